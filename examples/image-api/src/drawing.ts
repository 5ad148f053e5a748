export const sizes = { small: 256, medium: 512, large: 1_024 } as const;
export type Size = keyof typeof sizes;

const TILES = 6;

/** Whether a text is a color, such as `#3b82f6`. */
export function isColor(text: unknown): text is string {
  return typeof text === "string" && /^#[0-9a-f]{6}$/i.test(text);
}

/** Five colors around one, from dark to light. */
export function paletteOf(color: string): string[] {
  const [hue, saturation] = hueOf(color);
  return [22, 38, 54, 72, 90].map((lightness, i) =>
    hex((hue + (i - 2) * 18 + 360) % 360, saturation * 0.72, lightness / 100),
  );
}

/** An SVG image: tiles in the palette of a color. The same seed draws the same image. */
export function draw(size: Size, color: string, seed: string): string {
  const palette = paletteOf(color);
  const next = generator(seed);
  const shapes: string[] = [];
  for (let y = 0; y < TILES; y++) {
    for (let x = 0; x < TILES; x++) {
      const [back, front] = [palette[next() % 5]!, palette[next() % 5]!];
      shapes.push(`<path fill="${back}" d="M${x} ${y}h1v1h-1z"/>`);
      shapes.push(`<path fill="${front}" d="${shape(next() % 6, x, y)}"/>`);
    }
  }
  const pixels = sizes[size];
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${pixels}" height="${pixels}" viewBox="0 0 ${TILES} ${TILES}">${shapes.join("")}</svg>`;
}

/** A quarter of a circle in one of four corners, a circle, or a triangle. */
function shape(kind: number, x: number, y: number): string {
  switch (kind) {
    case 0:
      return `M${x} ${y}h1a1 1 0 0 1-1 1z`;
    case 1:
      return `M${x + 1} ${y}v1a1 1 0 0 1-1-1z`;
    case 2:
      return `M${x + 1} ${y + 1}h-1a1 1 0 0 1 1-1z`;
    case 3:
      return `M${x} ${y + 1}v-1a1 1 0 0 1 1 1z`;
    case 4:
      return `M${x + 0.2} ${y + 0.5}a.3.3 0 1 0 .6 0a.3.3 0 1 0-.6 0z`;
    default:
      return `M${x} ${y}l1 1h-1z`;
  }
}

/** Numbers that follow from a text (FNV-1a, then xorshift). */
function generator(seed: string): () => number {
  let state = 0x811c9dc5;
  for (const character of seed) state = Math.imul(state ^ character.codePointAt(0)!, 0x01000193);
  state ||= 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state >>> 8;
  };
}

/** Hue in degrees, and saturation from 0 to 1. */
function hueOf(color: string): [number, number] {
  const [red, green, blue] = [1, 3, 5].map((at) => Number.parseInt(color.slice(at, at + 2), 16) / 255) as [
    number,
    number,
    number,
  ];
  const [max, min] = [Math.max(red, green, blue), Math.min(red, green, blue)];
  const range = max - min;
  if (range === 0) return [0, 0];
  const sixth =
    max === red ? (green - blue) / range : max === green ? (blue - red) / range + 2 : (red - green) / range + 4;
  return [(sixth * 60 + 360) % 360, range / (1 - Math.abs(max + min - 1))];
}

function hex(hue: number, saturation: number, lightness: number): string {
  const part = (n: number) => {
    const k = (n + hue / 30) % 12;
    const value = lightness - saturation * Math.min(lightness, 1 - lightness) * Math.max(-1, Math.min(k - 3, 9 - k, 1));
    return Math.round(value * 255)
      .toString(16)
      .padStart(2, "0");
  };
  return `#${part(0)}${part(8)}${part(4)}`;
}
