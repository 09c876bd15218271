"""`./init.sh check | test | verify`: the checks and tests that every change passes, in CI and by hand."""
