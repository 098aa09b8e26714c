/// Tests docs/planning.md: the commands of "The whole way" run one after the other, each on the
/// files that the earlier ones wrote, and the plan is what trains.
#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/own_cache.h"
#include "stagecraft/tests/tools/train/run/train_run.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using nlohmann::json;

/// Returns the lines of the page's sh blocks.
std::vector<std::string> commands_of_page() {
  std::istringstream lines(read_text_file(STAGECRAFT_SOURCE_DIR "/docs/planning.md"));
  std::vector<std::string> commands;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      inside = line == "```sh";
    } else if (inside) {
      commands.push_back(line);
    }
  }
  return commands;
}

CommandResult run_in(const std::string& folder, const std::string& line) {
  const std::string programs = std::filesystem::path(STAGECRAFT_COMMAND).parent_path().string();
  return run_command({"bash", "-c", fmt::format("PATH='{}':$PATH; {}", programs, line)}, folder);
}

}  // namespace

TEST_CASE("every command of planning.md runs", "[tools][plan][docs]") {
  const OwnCache cache;
  const TemporaryFolder folder;
  std::filesystem::create_directory_symlink(STAGECRAFT_SOURCE_DIR "/tests/data/models/resnet",
                                            folder.path() + "/resnet");
  const std::vector<std::string> commands = commands_of_page();
  REQUIRE(commands.size() >= 4);
  for (const std::string& command : commands) {
    const CommandResult result = run_in(folder.path(), command);
    CAPTURE(command, result.out, result.err);
    CHECK(result.exit_code == 0);
  }
}

TEST_CASE("a plan trains in the microbatches that it chose, with its two files and no more",
          "[tools][train][plan]") {
  const OwnCache cache;
  const TemporaryFolder folder;
  const std::string model = "--layers 2 --dim 16 --heads 2 --ffn 32 --seq 8";
  const CommandResult planned =
      run_in(folder.path(),
             fmt::format("stagecraft profile {} --microbatch-sizes 2,6 -o costs.json && "
                         "stagecraft plan costs.json --devices 2 --batch 12 --microbatch-sizes 2 "
                         "--planner capslog --schedule-out plan.txt --cut-out plan.cut",
                         model));
  CAPTURE(planned.err);
  REQUIRE(planned.exit_code == 0);
  const auto tokens = [&](const std::string& more) {
    const CommandResult result =
        run_in(folder.path(), fmt::format("stagecraft train {} --steps 1 --json {}", model, more));
    CAPTURE(result.err);
    REQUIRE(result.exit_code == 0);
    std::istringstream lines(result.out);
    for (std::string line; std::getline(lines, line);) {
      const json object = json::parse(line);
      if (object.value("event", "") == "step") {
        return object.at("tokens").get<int>();
      }
    }
    return 0;
  };
  CHECK(tokens("--schedule plan.txt --cut @plan.cut") == 12 * 8);
  // A size that is given is used.
  CHECK(tokens("--schedule plan.txt --cut @plan.cut --microbatch-size 1") == 6 * 8);
}

}  // namespace stagecraft::tests
