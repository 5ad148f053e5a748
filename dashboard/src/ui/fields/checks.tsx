import { Tick } from "./tick.tsx";

/** Values that can be ticked together. */
export interface CheckGroup {
  /** Without a title the group has no tick of its own. */
  readonly title?: string;
  readonly options: readonly { readonly value: string; readonly label: string }[];
}

/** A choice of several, in groups. */
export function Checks({
  label,
  groups,
  value,
  onChange,
}: {
  label: string;
  groups: readonly CheckGroup[];
  value: readonly string[];
  onChange: (value: string[]) => void;
}) {
  const set = (values: readonly string[], isOn: boolean) =>
    onChange([...value.filter((other) => !values.includes(other)), ...(isOn ? values : [])]);
  return (
    <fieldset className="max-h-72 overflow-y-auto rounded-md border border-line px-2 py-1.5">
      <legend className="sr-only">{label}</legend>
      {groups.map(({ title, options }) => {
        const values = options.map((option) => option.value);
        const count = values.filter((one) => value.includes(one)).length;
        const isAll = count === values.length;
        return (
          <div key={title ?? ""} className="border-b border-line py-1 last:border-b-0 sm:flex">
            {title !== undefined && (
              <div className="shrink-0 sm:w-32">
                <Tick label={title} value={isAll} isMixed={count > 0 && !isAll} onChange={(isOn) => set(values, isOn)}>
                  <span className="font-medium">{title}</span>
                </Tick>
              </div>
            )}
            <div className="grid flex-1 grid-cols-[repeat(auto-fill,minmax(9.5rem,1fr))] gap-x-4 max-sm:pl-6">
              {options.map(({ value: one, label }) => (
                <Tick key={one} label={label} value={value.includes(one)} onChange={(isOn) => set([one], isOn)}>
                  {label}
                </Tick>
              ))}
            </div>
          </div>
        );
      })}
    </fieldset>
  );
}
