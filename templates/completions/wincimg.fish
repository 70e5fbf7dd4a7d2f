# Completion of wincimg for fish: a file of ~/.config/fish/completions
function __wincimg_complete
    set -l words (commandline --current-process --tokenize --cut-at-cursor)
    set -l word (commandline --current-token --cut-at-cursor)
    WINCIMG_COMPLETE=(count $words) command wincimg -- $words "$word" 2>/dev/null
end
complete --command wincimg --no-files --keep-order --arguments '(__wincimg_complete)'
