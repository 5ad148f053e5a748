/** The style of the element. Pages change it with the variables `--latchkey-…` and with `color-scheme`. */
export const style = `
:host{display:block;--accent:#246bce;--on-accent:#fff;--accent-light:#246bce;--accent-dark:#6ea8fe;
--text:light-dark(#1a1d23,#e8eaee);--quiet:light-dark(#5a616e,#a2aab8);--line:light-dark(#d9dde3,#3a3f49);
--surface:light-dark(#fff,#1d2026);--control:light-dark(#7d8592,#7b8494);--danger:light-dark(#b3261e,#ff8f86);
--strong:light-dark(var(--accent-light),var(--accent-dark));--radius:var(--latchkey-radius,.5rem);
color:var(--text);font:var(--latchkey-font,400 1rem/1.5 system-ui,sans-serif);overflow-wrap:anywhere}
:host([hidden]){display:none}
*,::before,::after{box-sizing:border-box}
h2,h3,p,ul,dl,dd{margin:0;padding:0}
.head{display:flex;flex-wrap:wrap;gap:.75rem 1rem;align-items:center;justify-content:space-between;margin-bottom:1rem}
h2{font-size:1.375rem;line-height:1.3}
h3{font-size:1rem;line-height:1.4}
ul{list-style:none;display:grid;gap:.5rem}
.key{border:1px solid var(--line);border-radius:var(--radius);background:var(--surface);
padding:.5rem .75rem;display:grid;gap:.25rem}
.top{display:flex;flex-wrap:wrap;gap:.25rem .75rem;align-items:center}
.badge{font-size:.8125rem;border:1px solid currentColor;border-radius:1rem;padding:0 .5rem;color:var(--quiet)}
.badge.active{color:light-dark(#17663a,#6fd39b)}
.badge.expired,.badge.disabled,.badge.leaked{color:var(--danger)}
code,.secret{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.875rem}
.facts{display:flex;flex-wrap:wrap;gap:.125rem 1.25rem;color:var(--quiet);font-size:.875rem}
.derived summary{cursor:pointer;font-size:.875rem}.derived ul{margin-top:.5rem}.derived .actions{margin-inline-start:auto}
.facts{align-items:center}.facts .usage{margin-inline-start:auto}
.facts strong{color:var(--text);font-weight:600}
.usage{display:flex;flex-wrap:wrap;gap:.125rem .75rem;align-items:center;font-size:.875rem;color:var(--quiet);
min-height:1.5rem}
svg{width:7.5rem;height:1.25rem;fill:var(--strong);border-bottom:1px solid var(--line)}
.actions,.end{display:flex;flex-wrap:wrap;gap:.5rem}
.top .actions{margin-inline-start:auto;gap:.375rem}
.actions button{font-size:.875rem;padding:.125rem .625rem;min-height:1.875rem}
code,h3{unicode-bidi:isolate}
.end{justify-content:flex-end;margin-top:.5rem}
button{font:inherit;font-size:.9375rem;color:var(--text);background:var(--surface);border:1px solid var(--control);
border-radius:var(--radius);padding:.375rem .875rem;min-height:2.25rem;cursor:pointer}
button:hover:not([aria-disabled=true]){border-color:var(--text)}
button.primary{background:var(--accent);color:var(--on-accent);border-color:var(--strong);font-weight:600}
button.danger{color:var(--danger);border-color:var(--danger)}
button[aria-disabled=true]{opacity:.55;cursor:not-allowed}
:focus-visible{outline:2px solid var(--strong);outline-offset:2px}
.note{color:var(--quiet)}
.notice{border:1px solid var(--line);border-radius:var(--radius);padding:1.5rem 1rem;background:var(--surface);display:grid;
gap:.75rem;justify-items:start}
.error{color:var(--danger)}
.error:empty{display:none}
dialog{color:inherit;background:var(--surface);border:1px solid var(--line);border-radius:var(--radius);padding:1.25rem;
width:min(30rem,calc(100vw - 2rem));max-height:calc(100vh - 2rem);overflow:auto}
dialog::backdrop{background:rgb(0 0 0/.5)}
form{display:grid;gap:1rem}
label,legend{font-weight:600;font-size:.9375rem}
.field{display:grid;gap:.25rem}
.hint{font-size:.8125rem;color:var(--quiet)}
input:not([type=radio],[type=checkbox]),select,textarea{font:inherit;color:inherit;background:var(--surface);
border:1px solid var(--control);border-radius:var(--radius);padding:.375rem .625rem;min-height:2.25rem;width:100%}
legend{padding:0}
fieldset{border:0;margin:0;padding:0;display:grid;gap:.375rem}
.choice{font-weight:400;display:flex;gap:.5rem;align-items:baseline}
input[type=radio],input[type=checkbox]{accent-color:var(--strong)}
.once{display:flex;flex-wrap:wrap;gap:.5rem}
.once .secret{flex:1 1 14rem;resize:none;overflow:hidden;word-break:break-all}
@media (max-width:30rem){.top .actions,.facts .usage{margin-inline-start:0}.head button,.end button{flex:1 1 auto}}
`;
