import { Argument, type Command } from "commander";

/** A command in the tree, with the words and flags that can follow it. */
interface Place {
  /** The words of the command, without the name of the program. */
  readonly path: string;
  readonly words: readonly { word: string; summary: string }[];
  readonly flags: readonly { flag: string; summary: string; takesValue: boolean; values: readonly string[] }[];
}

const shells = { bash, zsh, fish } as const;

/** Adds `completion`. */
export function addCompletion(program: Command): void {
  program
    .command("completion")
    .description("print the script that completes commands and flags in a shell")
    .helpGroup("Commands:")
    .exitOverride()
    .addArgument(new Argument("<shell>").choices(Object.keys(shells)))
    .addHelpText(
      "after",
      "\nExamples:\n  latchkey completion bash > ~/.local/share/bash-completion/completions/latchkey\n" +
        "  latchkey completion zsh > ~/.zfunc/_latchkey    # a folder of $fpath\n" +
        "  latchkey completion fish > ~/.config/fish/completions/latchkey.fish",
    )
    .action((shell: keyof typeof shells) => {
      process.stdout.write(shells[shell]([...placesOf(program, "")]));
    });
}

function* placesOf(command: Command, path: string): Generator<Place> {
  const visible = command.createHelp().visibleCommands(command);
  yield {
    path,
    words: visible.flatMap((child) =>
      namesOf(child).map((word) => ({ word, summary: firstLine(child.summary() || child.description()) })),
    ),
    flags: command
      .createHelp()
      .visibleOptions(command)
      .map((option) => ({
        flag: option.long!,
        summary: firstLine(option.description),
        takesValue: option.required,
        values: option.argChoices ?? [],
      })),
  };
  for (const child of command.commands) {
    for (const name of namesOf(child)) yield* placesOf(child, path === "" ? name : `${path} ${name}`);
  }
}

function namesOf(command: Command): string[] {
  return [command.name(), ...command.aliases()];
}

function firstLine(text: string): string {
  return text.split("\n")[0]!;
}

/** Text in single quotes for bash and zsh. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/**
 * The part that bash and zsh share. `_latchkey_look WORD…` sets `path` to the command that the words begin, `words`,
 * `flags` and `valued` (flags with a value) to what can follow, and `skip` to a flag that waits for its value.
 * `_latchkey_values PATH FLAG` sets `values`.
 */
function posix(places: readonly Place[]): string {
  const cases = places.map(({ path, words, flags }) => {
    const [names, all, valued] = [
      words.map(({ word }) => word),
      flags.map(({ flag }) => flag),
      flags.filter(({ takesValue }) => takesValue).map(({ flag }) => flag),
    ].map((list) => quoted(list.join(" ")));
    return `    ${quoted(path)}) words=${names} flags=${all} valued=${valued};;`;
  });
  const choices = places.flatMap(({ path, flags }) =>
    flags
      .filter(({ values }) => values.length > 0)
      .map(({ flag, values }) => `    ${quoted(`${path} ${flag}`)}) values=${quoted(values.join(" "))};;`),
  );
  return `_latchkey_values() {
  values=''
  case "$1 $2" in
${choices.join("\n")}
  esac
}
_latchkey_answers() {
  words='' flags='' valued=''
  case "$1" in
${cases.join("\n")}
  esac
}
_latchkey_look() {
  path='' skip=''
  _latchkey_answers ''
  for word in "$@"; do
    if [ -n "$skip" ]; then skip=''; continue; fi
    case "$word" in
      -*) case " $valued " in *" $word "*) skip="$word";; esac;;
      *)
        case " $words " in
          *" $word "*)
            if [ -n "$path" ]; then path="$path $word"; else path="$word"; fi
            _latchkey_answers "$path";;
        esac;;
    esac
  done
}
`;
}

function bash(places: readonly Place[]): string {
  return `# Completion of latchkey for bash. Written by \`latchkey completion bash\`.
${posix(places)}
_latchkey() {
  local path skip word words flags valued values current
  current="\${COMP_WORDS[COMP_CWORD]}"
  _latchkey_look "\${COMP_WORDS[@]:1:COMP_CWORD-1}"
  if [ -n "$skip" ]; then
    _latchkey_values "$path" "$skip"
    COMPREPLY=($(compgen -W "$values" -- "$current"))
    return
  fi
  case "$current" in
    -*) COMPREPLY=($(compgen -W "$flags" -- "$current"));;
    *) COMPREPLY=($(compgen -W "$words" -- "$current"));;
  esac
}
complete -o default -F _latchkey latchkey
`;
}

function zsh(places: readonly Place[]): string {
  return `#compdef latchkey
# Completion of latchkey for zsh. Written by \`latchkey completion zsh\`.
${posix(places)
  .replaceAll(/\bwords\b/g, "names")
  .replaceAll(/\bpath\b/g, "place")}
_latchkey() {
  local place skip word names flags valued values
  _latchkey_look "\${(@)words[2,CURRENT-1]}"
  if [ -n "$skip" ]; then
    _latchkey_values "$place" "$skip"
    if [ -n "$values" ]; then compadd -- \${=values}; else _files; fi
    return
  fi
  case "\${words[CURRENT]}" in
    -*) compadd -- \${=flags};;
    *) if [ -n "$names" ]; then compadd -- \${=names}; else _files; fi;;
  esac
}
if [ "\${funcstack[1]}" = _latchkey ]; then _latchkey "$@"; else compdef _latchkey latchkey; fi
`;
}

function fish(places: readonly Place[]): string {
  const lines = places.flatMap(({ path, words, flags }) => {
    const condition = `-n ${fishText(`__latchkey_at ${path}`)}`;
    return [
      ...words.map(({ word, summary }) => `complete -c latchkey -f ${condition} -a ${word} -d ${fishText(summary)}`),
      ...flags.map(({ flag, summary, takesValue, values }) => {
        const value = values.length > 0 ? ` -x -a ${fishText(values.join(" "))}` : takesValue ? " -r" : "";
        return `complete -c latchkey ${condition} -l ${flag.slice(2)}${value} -d ${fishText(summary)}`;
      }),
    ];
  });
  const names = places.filter(({ path }) => path !== "").map(({ path }) => fishText(path));
  return `# Completion of latchkey for fish. Written by \`latchkey completion fish\`.
set -g __latchkey_paths ${names.join(" ")}
function __latchkey_at
    set -l place
    for word in (commandline -opc)[2..-1]
        set -l next (string join ' ' $place $word)
        if contains -- $next $__latchkey_paths
            set -a place $word
        end
    end
    test "$place" = "$argv"
end
${lines.join("\n")}
`;
}

/** Text in single quotes for fish, in which only the backslash and the quote are special. */
function fishText(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
