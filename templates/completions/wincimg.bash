# Completion of wincimg for Bash; in ~/.bashrc: source <(wincimg completions bash)
_wincimg() {
    local piece=$2 word=${COMP_WORDS[COMP_CWORD]} rest=$COMP_LINE last=-1 i value
    local words=()
    # The cursor behind a : or = is behind a word of its own for Bash.
    [[ -z $piece && $word == [:=]* ]] && piece=$word
    # Bash ends words at : and = too; what has no space between is one.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        if [[ $i == 0 || $rest == [[:space:]]* ]]; then
            rest=${rest#"${rest%%[![:space:]]*}"}
            last=$((last + 1))
            words[last]=
        fi
        rest=${rest#"${COMP_WORDS[i]}"}
        ((i == COMP_CWORD)) && words[last]+=$piece || words[last]+=${COMP_WORDS[i]}
    done
    # Bash has what stands before already.
    local before=${words[last]%"$2"}
    COMPREPLY=()
    while IFS=$'\t' read -r value _; do
        value=${value#"$before"}
        [[ $word == [\"\']* ]] || printf -v value %q "$value"
        COMPREPLY+=("$value")
    done < <(WINCIMG_COMPLETE=$last command wincimg -- "${words[@]}" 2>/dev/null)
    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[:=/] ]] && compopt -o nospace 2>/dev/null
    return 0
}
complete -o nosort -F _wincimg wincimg 2>/dev/null || complete -F _wincimg wincimg
