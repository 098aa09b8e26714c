#include "stagecraft/tools/worker/worker.h"

#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "stagecraft/actors/launch/worker/worker_program.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"
#include "stagecraft/tests/tools/common/command_run.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Returns the long options of a help text, each once.
std::set<std::string> options_in(const std::string& help) {
  std::set<std::string> options;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  --")) {
      options.insert(line.substr(2, line.find(' ', 2) - 2));
    }
  }
  return options;
}

TEST_CASE("the help of a worker has the options that it reads, and no others", "[tools][worker]") {
  const CommandResult help = run_in_test(&tools::worker, {"--help"});
  CHECK(help.exit_code == 0);
  CHECK(help.err.empty());
  WorkerProcessOptions all{.host = "h", .port = 1, .credentials = "c"};
  all.place = 0;
  all.incarnation = 0;
  all.bind = "b";
  all.outlive = std::chrono::milliseconds(1);
  std::set<std::string> read;
  for (const std::string& word : worker_arguments(all)) {
    if (word.starts_with("--")) {
      read.insert(word);
    }
  }
  CHECK(options_in(help.out) == read);
}

TEST_CASE("a worker prints its help wherever the word for it stands", "[tools][worker]") {
  const std::string help = run_in_test(&tools::worker, {"--help"}).out;
  CHECK_THAT(help,
             ContainsSubstring("Usage: stagecraft worker") && ContainsSubstring("Exit status"));
  CHECK(run_in_test(&tools::worker, {"-h"}).out == help);
  CHECK(run_in_test(&tools::worker, {"--join", "h:1", "--help"}).out == help);
}

TEST_CASE("a worker with wrong options says which it expects", "[tools][worker][bad-input]") {
  const TemporaryFolder folder;
  const auto refused = [](const std::vector<std::string>& words,
                          const std::vector<std::string>& parts) {
    CAPTURE(words);
    check_message(run_in_test(&tools::worker, words), 2, parts);
  };
  refused({}, {"a worker needs --join HOST:PORT", "--credentials DIR"});
  refused({"--join", "h:1"}, {"a worker needs", "--credentials DIR"});
  refused({"--credentials", folder.path()}, {"a worker needs --join HOST:PORT"});
  refused({"--join"}, {"--join expects a value, found none"});
  refused({"--jion", "h:1"}, {"an option of a worker, found \"--jion\"", "--join"});
  refused({"--join", "h", "--credentials", "c"}, {"--join expects HOST:PORT", "\"h\""});
  for (const char* option :
       {"--place", "--incarnation", "--lifeline", "--heartbeat", "--patience"}) {
    refused({"--join", "h:1", "--credentials", "c", option, "-1"},
            {std::string(option) + " expects a whole number of at least 0, found \"-1\""});
  }
  refused({"--join", "127.0.0.1:1", "--credentials", folder.path()}, {folder.path()});
  refused({"--join", "127.0.0.1:1", "--credentials", "/none"}, {"/none"});
}

}  // namespace
}  // namespace stagecraft::tests
