/// Tests `stagecraft train` with workers that compute with different code: its message, and that
/// --processor common makes them compute alike. A script that replaces ssh runs both here.
#include <sys/stat.h>

#include <string>
#include <vector>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/train/run/train_run.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using Words = std::vector<std::string>;

/// Makes two hosts; the second has fewer processor features.
struct MixedPair {
  TemporaryFolder folder;
  std::string ssh = folder.write("ssh",
                                 "#!/bin/sh\n"
                                 "for word; do command=$word; done\n"
                                 "exec sh -c \"$command\"\n");
  std::string hosts =
      folder.write("hosts",
                   "node-a addr=127.0.0.1 ATEN_CPU_CAPABILITY=avx2\n"
                   "node-b addr=127.0.0.1 ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=SSE41\n");

  MixedPair() { chmod(ssh.c_str(), 0755); }

  [[nodiscard]] Words train(const Words& more) const {
    Words words{STAGECRAFT_COMMAND, "launch", "--hosts", hosts, "--ssh", ssh, "--"};
    const Words run = small_train(more);
    words.insert(words.end(), run.begin() + 1, run.end());
    return words;
  }
};

/// Returns the words of a run in this process alone, with this code of ATen's.
Words train_with(const std::string& capability, const Words& more) {
  Words words{"env", "ATEN_CPU_CAPABILITY=" + capability};
  const Words run = small_train(more);
  words.insert(words.end(), run.begin(), run.end());
  return words;
}

TEST_CASE("ranks that compute other bits are told at the start, and by --verify",
          "[tools][train][processor]") {
  const MixedPair pair;
  const CommandResult run = run_command(pair.train({"--verify"}));
  INFO(run.out << run.err);
  CHECK(run.exit_code == 1);
  CHECK_THAT(run.err,
             ContainsSubstring("train: ranks compute other bits: AVX2 on rank 0") &&
                 ContainsSubstring("; DEFAULT on rank 1") &&
                 ContainsSubstring("mend: train with --processor common"));
  CHECK_THAT(run.out,
             ContainsSubstring("verify: NOT bit-equal to one process") &&
                 ContainsSubstring("verify: the likely cause is that processes compute other "
                                   "bits: ") &&
                 ContainsSubstring("DEFAULT on rank 1"));
}

TEST_CASE("such ranks end with the bits of one process under --processor common",
          "[tools][train][processor]") {
  const MixedPair pair;
  const CommandResult run = run_command(pair.train({"--verify", "--processor", "common"}));
  INFO(run.out << run.err);
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.out, ContainsSubstring("verify: bit-equal to one process"));
  CHECK_THAT(run.err, !ContainsSubstring("compute other bits"));
}

TEST_CASE("ranks that are started before the model is made have to be enough",
          "[tools][train][processor][bad-input]") {
  const CommandResult run = run_command(small_train({"--workers",
                                                     "processes",
                                                     "--processor",
                                                     "common",
                                                     "--layers",
                                                     "5",
                                                     "--cut",
                                                     "layers.1,layers.2,layers.3,layers.4"}));
  INFO(run.out << run.err);
  CHECK(run.exit_code == 2);
  CHECK_THAT(run.err, ContainsSubstring("give --ranks 5"));
}

TEST_CASE("a run that continues with other code says so", "[tools][train][processor][resume]") {
  const TemporaryFolder folder;
  const std::string place = folder.path() + "/run";
  const auto run = [&](const std::string& capability, const std::string& steps) {
    return run_command(train_with(
        capability,
        {"--ranks", "2", "--resume", place, "--save-dir", place, "--steps", steps, "--json"}));
  };
  REQUIRE(run("default", "1").exit_code == 0);
  const CommandResult same = run("default", "2");
  INFO(same.out << same.err);
  CHECK_THAT(same.out, !ContainsSubstring("other_processors"));
  const CommandResult other = run("avx2", "3");
  INFO(other.out << other.err);
  CHECK(other.exit_code == 0);
  CHECK_THAT(other.out,
             ContainsSubstring("\"event\":\"other_processors\"") &&
                 ContainsSubstring("the ranks that saved it computed with DEFAULT ") &&
                 ContainsSubstring("these compute with AVX2 "));
}

}  // namespace
}  // namespace stagecraft::tests
