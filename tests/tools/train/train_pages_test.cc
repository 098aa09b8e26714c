/// Tests that the commands of docs/train-command.md, operate.md and traces.md run, each with two
/// steps.
/// train_costs_test.cc runs those of "Predicting a run" as they are.

#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/tools/images/made_images.h"

namespace stagecraft::tests {
namespace {

/// Returns the ```sh lines of a page, without those of a section.
std::vector<std::string> commands_of_page(const std::string& name, const std::string& without) {
  std::istringstream lines(read_text_file(STAGECRAFT_SOURCE_DIR "/docs/" + name));
  std::vector<std::string> commands;
  bool here = true, inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("## ")) {
      here = line != without;
    } else if (line.starts_with("```")) {
      inside = line == "```sh";
    } else if (here && inside) {
      commands.push_back(line);
    }
  }
  return commands;
}

/// Returns the command with two steps, if it trains.
std::string shortened(const std::string& command) {
  static const std::regex kSteps("--steps [0-9]+");
  if (!command.starts_with("stagecraft train")) {
    return command;
  }
  return std::regex_search(command, kSteps) ? std::regex_replace(command, kSteps, "--steps 2")
                                            : command + " --steps 2";
}

void check_commands(const std::vector<std::string>& commands, const std::string& folder) {
  for (const std::string& command : commands) {
    const std::string line = shortened(command);
    CAPTURE(line);
    const CommandResult result =
        run_command({"bash", "-c", "PATH=" STAGECRAFT_BUILD_DIR "/bin:$PATH; " + line}, folder);
    CAPTURE(result.out, result.err);
    CHECK(result.exit_code == 0);
  }
}

}  // namespace

TEST_CASE("every command of train-command.md runs", "[tools][train][docs]") {
  const TemporaryFolder folder;
  write_below(folder.path(), "photos/one.png", made_png(80, 60, {200, 30, 30, 255}));
  write_below(folder.path(), "photos/two.png", made_png(60, 80, {30, 200, 30, 255}));
  const std::vector<std::string> commands =
      commands_of_page("train-command.md", "## Predicting a run");
  REQUIRE(commands.size() >= 6);
  check_commands(commands, folder.path());
}

TEST_CASE("every command of operate.md runs", "[tools][train][docs]") {
  const TemporaryFolder folder;
  const std::vector<std::string> commands = commands_of_page("operate.md", "");
  REQUIRE(!commands.empty());
  check_commands(commands, folder.path());
}

TEST_CASE("every command of traces.md runs", "[tools][train][trace][docs]") {
  const TemporaryFolder folder;
  const std::vector<std::string> commands = commands_of_page("traces.md", "");
  REQUIRE(commands.size() >= 3);
  check_commands(commands, folder.path());
}

}  // namespace stagecraft::tests
