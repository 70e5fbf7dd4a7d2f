#compdef wincimg
# Completion of wincimg for Zsh; in ~/.zshrc, after compinit: source <(wincimg completions zsh)
_wincimg() {
    local line value help home=
    local -a whole begun
    # Zsh expands ~/ only as it was typed, not quoted.
    compset -P '\~/' && home='~/'
    for line in "${(@f)$(WINCIMG_COMPLETE=$((CURRENT - 1)) command wincimg -- "${(@Q)words}" 2>/dev/null)}"; do
        [[ -n $line ]] || continue
        value=${${line%%$'\t'*}#$home}
        help=${line#*$'\t'}
        value=${${value//\\/\\\\}//:/\\:}${help:+:}$help
        # Behind these the word goes on.
        if [[ ${line%%$'\t'*} == *[:=/] ]]; then
            begun+=("$value")
        else
            whole+=("$value")
        fi
    done
    (( $#whole )) && _describe -V wincimg whole
    (( $#begun )) && _describe -V wincimg begun -S ''
}
if [[ $funcstack[1] == _wincimg ]]; then
    _wincimg "$@"
else
    compdef _wincimg wincimg
fi
