# Completion of wincimg for Bash; in ~/.bashrc: source <(wincimg completions bash)
_wincimg_quote() {
    local rest=$1
    if [[ -z $quote ]]; then
        printf -v value %q "$rest"
        # Bash expands ~/ only as it was typed, not quoted.
        [[ $rest == "~/"* ]] && value=${value#\\}
        return 0
    fi
    # A name is written as it must be within the open quote, which it cannot end.
    value=
    for ((i = 0; i < ${#rest}; i++)); do
        case $quote${rest:i:1} in
            \'\') value+="'\\''" ;;
            # No backslash hides ! from the history within quotes.
            \"!) value+='"\!"' ;;
            \"[\"\\\$\`]) value+="\\${rest:i:1}" ;;
            *) value+=${rest:i:1} ;;
        esac
    done
    # Readline closes no quote behind another one.
    [[ $value == *"$quote" ]] && value+=$quote
    return 0
}
_wincimg() {
    local piece=$2 word=${COMP_WORDS[COMP_CWORD]} rest=$COMP_LINE last=-1 i value quote=
    local words=()
    COMPREPLY=()
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
    # In $'...', a candidate could end the quote.
    [[ $COMP_LINE == *\$\'* ]] && return 0
    # The quote that is open at the cursor.
    for ((i = 0; i < COMP_POINT; i++)); do
        case $quote${COMP_LINE:i:1} in
            \\ | \"\\) i=$((i + 1)) ;;
            \" | \') quote=${COMP_LINE:i:1} ;;
            \"\" | \'\') quote= ;;
        esac
    done
    while IFS=$'\t' read -r value _; do
        _wincimg_quote "${value#"$before"}"
        COMPREPLY+=("$value")
    done < <(WINCIMG_COMPLETE=$last command wincimg -- "${words[@]}" 2>/dev/null)
    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[:=/] ]] && compopt -o nospace 2>/dev/null
    return 0
}
complete -o nosort -F _wincimg wincimg 2>/dev/null || complete -F _wincimg wincimg
