"""`cosolve completion`: the script by which a shell completes the command.

The shells ask the command itself: with `_COSOLVE_COMPLETE` set it prints what fits the line in `_TYPER_COMPLETE_ARGS`,
one per line with its help after a tab (as for fish), or as zsh takes it. Where nothing fits, the shell offers files.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class Shell(StrEnum):
    """Shells that there is a script for."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"


_ASK = "COLUMNS=9999 _COSOLVE_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION"  # help in one line

#: By shell. Words of bash end at a colon, which methods have in their names: what stands before it is there already.
_SCRIPTS = {
    Shell.bash: f"""\
_cosolve_completion() {{
    local IFS=$'\\n' line="${{COMP_LINE:0:COMP_POINT}}" word
    COMPREPLY=( $({_ASK}=get-args _TYPER_COMPLETE_ARGS="$line" "$1" 2>/dev/null | cut -f 1) )
    word="${{line##* }}"
    if [[ "$word" == *:* && "$COMP_WORDBREAKS" == *:* ]]; then
        COMPREPLY=( "${{COMPREPLY[@]#"${{word%:*}}":}}" )
    fi
}}
complete -o default -F _cosolve_completion cosolve
""",
    Shell.zsh: """\
#compdef cosolve
_cosolve_completion() {
    local line="${words[1,$CURRENT]}"
    eval "$(COLUMNS=9999 _COSOLVE_COMPLETE=complete_zsh _TYPER_COMPLETE_ARGS="$line" $words[1] 2>/dev/null)"
}
if [[ "$funcstack[1]" == _cosolve ]]; then
    _cosolve_completion "$@"
else
    compdef _cosolve_completion cosolve
fi
""",
    Shell.fish: f"""\
complete --command cosolve --no-files \\
    --condition "{_ASK}=is-args _TYPER_COMPLETE_ARGS=(commandline -cp | string collect) cosolve 2>/dev/null" \\
    --arguments "({_ASK}=get-args _TYPER_COMPLETE_ARGS=(commandline -cp | string collect) cosolve 2>/dev/null)"
""",
}


def completion(
    shell: Annotated[Shell, typer.Argument(help="The shell that shall read it.", show_default=False)],
) -> None:
    """Print the script by which a shell completes commands, options, names and files.

    `cosolve docs command-line` says where to put it; `cosolve --install-completion` does that by itself.
    """
    typer.echo(_SCRIPTS[shell], nl=False)
