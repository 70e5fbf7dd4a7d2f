class Wincimg < Formula
  desc "Builds, checks and moves Windows container images, from Linux too"
  homepage "@HOME@"
  version "@VERSION@"
  license "Apache-2.0"

  depends_on :linux

  on_linux do
    on_intel do
      url "@URL@/wincimg-@VERSION@-x86_64-unknown-linux-musl.tar.gz"
      sha256 "@SHA256_X86_64_LINUX@"
    end
    on_arm do
      url "@URL@/wincimg-@VERSION@-aarch64-unknown-linux-musl.tar.gz"
      sha256 "@SHA256_AARCH64_LINUX@"
    end
  end

  def install
    bin.install "wincimg"
    bin.install_symlink "wincimg" => "kubectl-wincimg"
    man1.install Dir["man/man1/*.1"]
    bash_completion.install "completions/wincimg.bash" => "wincimg"
    fish_completion.install "completions/wincimg.fish"
    zsh_completion.install "completions/wincimg.zsh" => "_wincimg"
    doc.install "THIRD-PARTY-LICENSES.txt"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/wincimg --version")
    assert_match "17763.973", shell_output("#{bin}/wincimg demo")
  end
end
