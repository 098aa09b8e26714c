/// Tests the README's promises: its commands run, its program is built, and a command prints the
/// output that the README shows after it.

#include <unistd.h>

#include <filesystem>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"

namespace stagecraft::tests {
namespace {

struct Block {
  std::string language;
  std::string text;
};

struct ReadmeCommand {
  std::string line;
  int exit_code = 0;
  std::optional<std::string> output;  ///< the ```text block that follows
};

std::vector<Block> blocks_of(const std::string& markdown) {
  std::vector<Block> blocks;
  std::istringstream lines(markdown);
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("```")) {
      if (inside) {
        blocks.back().text += line + "\n";
      }
      continue;
    }
    if (!inside) {
      blocks.push_back({line.substr(3), ""});
    }
    inside = !inside;
  }
  return blocks;
}

/// Returns the lines of every ```sh block; "# exit 1" after one gives its exit status.
std::vector<ReadmeCommand> commands_of(const std::vector<Block>& blocks) {
  std::vector<ReadmeCommand> commands;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].language != "sh") {
      continue;
    }
    std::istringstream lines(blocks[i].text);
    for (std::string line; std::getline(lines, line);) {
      std::smatch exit;
      const bool fails = std::regex_search(line, exit, std::regex("# exit ([0-9]+)$"));
      commands.push_back({line, fails ? std::stoi(exit[1]) : 0, std::nullopt});
    }
    if (i + 1 < blocks.size() && blocks[i + 1].language == "text") {
      commands.back().output = blocks[i + 1].text;
    }
  }
  return commands;
}

/// Makes a folder that looks like a checkout with this release build.
void make_checkout(const std::string& folder) {
  namespace fs = std::filesystem;
  for (const char* name : {"examples", "tests", "tools"}) {
    fs::create_directory_symlink(fs::path(STAGECRAFT_SOURCE_DIR) / name, fs::path(folder) / name);
  }
  fs::create_directory(fs::path(folder) / "build");
  fs::create_directory_symlink(STAGECRAFT_BUILD_DIR, fs::path(folder) / "build" / "release");
}

std::string readme() {
  return read_text_file(STAGECRAFT_SOURCE_DIR "/README.md");
}

}  // namespace

TEST_CASE("every command of the README runs", "[tools][readme]") {
  const std::vector<ReadmeCommand> commands = commands_of(blocks_of(readme()));
  REQUIRE(commands.size() >= 5);
  const TemporaryFolder folder;
  make_checkout(folder.path());
  for (const ReadmeCommand& command : commands) {
    CAPTURE(command.line);
    if (command.line.starts_with("tools/")) {
      // These commands build everything or run all tests, this one included.
      const std::string script = command.line.substr(0, command.line.find(' '));
      CHECK(access((STAGECRAFT_SOURCE_DIR "/" + script).c_str(), X_OK) == 0);
      continue;
    }
    const CommandResult result = run_command({"bash", "-c", command.line}, folder.path());
    CAPTURE(result.out, result.err);
    CHECK(result.exit_code == command.exit_code);
    if (command.output) {
      CHECK(result.err + result.out == *command.output);
    }
  }
}

TEST_CASE("the README says how to build each example that it runs", "[tools][readme]") {
  const std::string text = readme();
  std::smatch build;
  REQUIRE(std::regex_search(text, build, std::regex("`cmake --build [a-z -]*--target ([^`]+)`")));
  const std::string targets = " " + build[1].str() + " ";
  const std::regex example("bin/examples/([a-z_]+)");
  int seen = 0;
  for (const ReadmeCommand& command : commands_of(blocks_of(text))) {
    std::smatch found;
    if (std::regex_search(command.line, found, example)) {
      ++seen;
      CHECK_THAT(targets,
                 Catch::Matchers::ContainsSubstring(" stagecraft_example_" + found[1].str() + " "));
    }
  }
  CHECK(seen == 2);
}

TEST_CASE("the programs in the README are those that are built", "[tools][readme]") {
  std::string programs;
  for (const char* name : {"two_stages", "own_worker"}) {
    programs +=
        read_text_file(std::string(STAGECRAFT_SOURCE_DIR "/examples/") + name + ".cc") + "\n";
  }
  int seen = 0;
  for (const Block& block : blocks_of(readme())) {
    if (block.language == "cpp") {
      ++seen;
      CHECK_THAT(programs, Catch::Matchers::ContainsSubstring(block.text));
    }
  }
  CHECK(seen == 2);
}

}  // namespace stagecraft::tests
