//! Names of parameters, and parameters in a hashtable.

use super::{check, image};

#[test]
fn defaults_see_the_parameters_that_are_given() {
    let mut tree = image();
    let script = br"param($a = ('C:\' + $b), $b) mkdir $a";
    tree.file(r"C:\s.ps1", Some(script.to_vec()));
    check(
        &tree,
        r"cmd> powershell -File C:\s.ps1 -b given => folder C:\given",
    );
}
