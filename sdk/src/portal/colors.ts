type Rgb = readonly [number, number, number];

const WHITE: Rgb = [255, 255, 255];
const BLACK: Rgb = [0, 0, 0];
/** The backgrounds of the light and of the dark theme: `style.ts` has the same. */
const LIGHT: Rgb = WHITE;
const DARK: Rgb = [29, 32, 38];
/** WCAG 2.2, success criterion 1.4.3. */
const CONTRAST_MIN = 4.5;

/** An accent color as CSS variables: for the background of buttons and the text on it, and for texts on each theme. */
export function accentVariables(color: string): Record<string, string> {
  const accent = [1, 3, 5].map((at) => Number.parseInt(color.slice(at, at + 2), 16)) as unknown as Rgb;
  const onAccent = contrast(accent, WHITE) >= contrast(accent, BLACK) ? WHITE : BLACK;
  return {
    "--accent": css(accent),
    "--on-accent": css(onAccent),
    "--accent-light": css(readable(accent, LIGHT, BLACK)),
    "--accent-dark": css(readable(accent, DARK, WHITE)),
  };
}

/** The color, moved towards black or white until it can be read on the background. */
function readable(color: Rgb, background: Rgb, towards: Rgb): Rgb {
  for (let share = 0; share < 1; share += 0.05) {
    const mixed = color.map((value, i) => Math.round(value + (towards[i]! - value) * share)) as unknown as Rgb;
    if (contrast(mixed, background) >= CONTRAST_MIN) return mixed;
  }
  return towards;
}

/** The contrast of two colors, from 1 to 21, as WCAG defines it. */
function contrast(a: Rgb, b: Rgb): number {
  const [x, y] = [luminance(a), luminance(b)];
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}

function luminance(color: Rgb): number {
  const [red, green, blue] = color.map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  }) as unknown as Rgb;
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function css(color: Rgb): string {
  return `rgb(${color.join(" ")})`;
}
