/// Tests a user's own schedule array on two hosts, as a file and in C++: the first example of
/// docs/cluster.md, whose text this test runs.
#include <regex>

#include "stagecraft/tests/hosts/cluster_words.h"
#include "stagecraft/tests/hosts/skip.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr const char* kProgram = STAGECRAFT_TWO_HOSTS;

/// Returns the first block of the page that begins with this text, without its fences.
std::string block(const std::string& begin) {
  const std::string page = read_text_file(STAGECRAFT_SOURCE_DIR "/docs/cluster.md");
  const std::size_t at = page.find(begin);
  REQUIRE(at != std::string::npos);
  const std::size_t from = page.find('\n', at) + 1;
  return page.substr(from, page.find("```\n", from) - from);
}

TEST_CASE("the page of clusters begins with a program that is built", "[hosts][docs]") {
  CHECK_THAT(read_text_file(STAGECRAFT_SOURCE_DIR "/examples/two_hosts.cc"),
             ContainsSubstring(block("```cpp")));
}

TEST_CASE("an array in a file trains on two hosts with the bits of one process", "[hosts]") {
  skip_without_hosts();
  const std::string commands = block("```sh");
  std::smatch array;
  REQUIRE(std::regex_search(commands, array, std::regex("mine.txt <<END\n((?:.*\n){2})END\n")));
  const TestHosts hosts(3);
  const TemporaryFolder folder;
  const CommandResult run = run_command(launch_words(
      hosts,
      hosts.file(1),
      {"train", "--schedule", folder.write("mine.txt", array[1]), "--steps", "20", "--verify"}));
  INFO(run.out << run.err);
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.out, ContainsSubstring("equal"));
}

TEST_CASE("an array in C++ computes on two hosts what it computes alone", "[hosts]") {
  skip_without_hosts();
  const CommandResult alone = run_command({kProgram});
  INFO(alone.out << alone.err);
  REQUIRE(alone.exit_code == 0);
  REQUIRE_THAT(alone.out, ContainsSubstring("step 100  loss "));

  const TestHosts hosts(3);
  const std::string generic = hosts.name(1) + "\n" + hosts.name(2) + " addr=" + hosts.address(2);
  const std::string itself =
      hosts.name(1) + " worker=" + kProgram + "\n" + hosts.name(2) + " worker=" + kProgram;
  const TemporaryFolder folder;
  const std::string names = hosts.address(1) + " host-1\n" + hosts.address(2) + " host-2\n";
  hosts.set_names(0, names);
  for (const std::string& lines : {generic, itself}) {
    CAPTURE(lines);
    const CommandResult run =
        run_command(launch_words(hosts, folder.write("hosts", lines + "\n"), {kProgram}));
    INFO(run.err);
    CHECK(run.exit_code == 0);
    CHECK(run.out == alone.out);
    CHECK_THAT(run.err,
               ContainsSubstring("rank 0: process") && ContainsSubstring(" on host-1,") &&
                   ContainsSubstring(" on host-2,"));
  }
}

TEST_CASE("a worker program that is none is told as such, with its host", "[hosts][refusals]") {
  skip_without_hosts();
  const TestHosts hosts(2);
  const TemporaryFolder folder;
  const std::string line = hosts.name(1) + " slots=2 addr=" + hosts.address(1);
  for (const auto& [program, end] : {std::pair("/bin/false", "exit status 1"),
                                     std::pair("/nowhere/worker", "exit status 127")}) {
    const CommandResult run = run_command(
        launch_words(hosts, folder.write("hosts", line + " worker=" + program + "\n"), {kProgram}));
    INFO(run.err);
    CHECK(run.exit_code != 0);
    CHECK_THAT(run.err,
               ContainsSubstring("on host-1 ended with " + std::string(end)) &&
                   ContainsSubstring("before it had joined"));
  }
}

}  // namespace
}  // namespace stagecraft::tests
