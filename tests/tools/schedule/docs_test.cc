/// Tests the pages about schedules: their commands print the output that the pages show, their C++
/// is compiled here, every rule has an example that breaks it, and every builder and format has its
/// line.

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/formats/registry.h"
#include "stagecraft/scheduler/rules/registry.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/scheduler/simulate/simulate.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/schedule/schedule_run.h"
#include "stagecraft/tests/tools/schedule/serial.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

struct Block {
  std::string heading;   ///< the last heading before it
  std::string language;  ///< "text", "console", "cpp" ...
  std::string name;      ///< of the file it shows, or empty
  std::string text;
};

std::string page_text(const std::string& page) {
  return read_text_file(STAGECRAFT_SOURCE_DIR "/docs/" + page);
}

std::vector<Block> blocks_of_page(const std::string& page) {
  std::istringstream lines(page_text(page));
  std::vector<Block> blocks;
  std::string heading;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("```")) {
      if (inside) {
        blocks.back().text += line + '\n';
      } else if (line.starts_with("#")) {
        heading = line.substr(line.find_first_not_of("# "));
      }
      continue;
    }
    inside = !inside;
    if (inside) {
      std::istringstream info(line.substr(3));
      Block block{.heading = heading};
      info >> block.language >> block.name;
      blocks.push_back(block);
    }
  }
  return blocks;
}

struct Example {
  std::string command;  ///< what follows "stagecraft schedule"
  std::string output;
};

std::string without_program(std::string line) {
  const std::string program = "stagecraft schedule ";
  for (std::size_t at = 0; (at = line.find(program, at)) != std::string::npos;) {
    line.erase(at, program.size());
  }
  return line;
}

/// Returns the "$ stagecraft schedule ..." lines of a block, each with the text that follows it.
std::vector<Example> examples_of(const std::string& text) {
  std::vector<Example> examples;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("$ ")) {
      examples.push_back({without_program(line.substr(2)), ""});
    } else if (!examples.empty()) {
      examples.back().output += line + '\n';
    }
  }
  return examples;
}

std::string with_single_blanks(const std::string& text) {
  std::istringstream words(text);
  std::string joined;
  for (std::string word; words >> word;) {
    joined += word + ' ';
  }
  return joined;
}

/// Makes a new folder the current one, so that examples can name files.
class InFolder {
 public:
  InFolder() : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(folder_.path());
  }
  ~InFolder() { std::filesystem::current_path(before_); }
  InFolder(const InFolder&) = delete;
  InFolder& operator=(const InFolder&) = delete;

  void write(const std::string& name, const std::string& text) const {
    (void)folder_.write(name, text);
  }

 private:
  TemporaryFolder folder_;
  std::filesystem::path before_;
};

/// Runs every console example of a page, on the files that the page shows before it. Returns the
/// number of examples.
int check_examples(const std::string& page) {
  const InFolder folder;
  int seen = 0;
  for (const Block& block : blocks_of_page(page)) {
    if (!block.name.empty()) {
      folder.write(block.name, block.text);
    }
    if (block.language != "console") {
      continue;
    }
    for (const Example& example : examples_of(block.text)) {
      CAPTURE(page, block.heading, example.command);
      const CommandResult result = run_schedule_line(example.command);
      CHECK(result.err + result.out == example.output);
      ++seen;
    }
  }
  return seen;
}

std::string told(const std::vector<Violation>& violations) {
  std::string text;
  for (const Violation& v : violations) {
    text += to_string(v) + '\n';
  }
  return text;
}

std::string tell_v27() {
  const Schedule late = Schedule::parse("0F0 0F2 0F1 0B0 0B1 0B2");
  const std::vector<Violation> violations =
      validate(late, StageGraph::chain(1), {.microbatch_order = true});
  return told(violations);
}

std::string tell_v33() {
  StageGraph graph = StageGraph::chain(2);
  graph.add_tied({.name = "embedding", .stages = {StageId(0), StageId(1)}});
  const Schedule schedule = Schedule::parse(
      "0F0 .   .   0B0\n"
      ".   1F0 1B0 .\n");
  const std::vector<Violation> violations = validate(schedule, graph);
  return told(violations);
}

/// Returns a registry with the line that the page shows.
std::vector<BuilderInfo> registry_with_serial() {
  using R = const BuildRequest&;
  return {
      {.name = "serial",
       .summary = "one microbatch at a time: no pipeline at all",
       .build = [](R r) { return serial(r.devices, r.microbatches); }},
  };
}

std::set<std::string> all_rules() {
  std::set<std::string> all;
  for (const rules::RuleInfo& info : rules::rule_table()) {
    all.insert(info.numbers.begin(), info.numbers.end());
  }
  return all;
}

/// Returns a format's line in the table of docs/schedules.md.
std::string line_of(const ScheduleFormat& format) {
  const auto yes = [](bool can) { return can ? "yes" : "no"; };
  const formats::FormatWords& words = format.words;
  const bool any = words.graph == formats::GraphWords::Any;
  return fmt::format("| `{}` | {} | {} | {} | {} | {} | {} |",
                     format.name,
                     format.summary,
                     yes(words.bubbles),
                     any                                         ? "any"
                     : words.graph == formats::GraphWords::Model ? "the model's"
                                                                 : "a chain",
                     yes(any),
                     words.groups == formats::GroupWords::Any ? "any"
                     : words.groups == formats::GroupWords::Independent
                         ? "of different microbatches or stages"
                     : words.groups == formats::GroupWords::None ? "no"
                                                                 : "one F with one B",
                     yes(words.updates));
}

}  // namespace

TEST_CASE("every command of the pages about schedules prints the output that they show",
          "[tools][docs]") {
  CHECK(check_examples("schedules.md") >= 35);
  CHECK(check_examples("rules.md") >= 25);
  CHECK(check_examples("builders.md") >= 1);
}

TEST_CASE("every rule has an example that breaks it", "[tools][docs]") {
  const std::vector<Block> blocks = blocks_of_page("rules.md");
  for (const std::string& rule : all_rules()) {
    CAPTURE(rule);
    const auto shows = std::ranges::find_if(blocks, [&](const Block& block) {
      return block.heading == rule && block.language != "cpp" && block.name.empty();
    });
    REQUIRE(shows != blocks.end());
    CHECK_THAT("\n" + shows->text,
               ContainsSubstring("\n" + rule) || ContainsSubstring("stagecraft: " + rule));
  }
}

TEST_CASE("rules that only C++ can break have the messages of docs/rules.md", "[tools][docs]") {
  for (const Block& block : blocks_of_page("rules.md")) {
    if (block.language == "text" && block.heading == "V27") {
      CHECK(tell_v27() == block.text);
    }
    if (block.language == "text" && block.heading == "V33") {
      CHECK(tell_v33() == block.text);
    }
  }
}

TEST_CASE("the C++ of docs/rules.md and docs/builders.md is compiled and tested", "[tools][docs]") {
  const std::string here = STAGECRAFT_SOURCE_DIR "/tests/tools/schedule/";
  const std::string compiled = with_single_blanks(read_text_file(here + "docs_test.cc")) +
                               with_single_blanks(read_text_file(here + "serial.h")) +
                               with_single_blanks(read_text_file(here + "serial.cc"));
  int seen = 0;
  for (const char* page : {"schedules.md", "rules.md", "builders.md"}) {
    for (const Block& block : blocks_of_page(page)) {
      if (block.language != "cpp") {
        continue;
      }
      std::string text = block.text;
      const std::string place = "stagecraft/scheduler/builders/serial.h";
      if (const std::size_t at = text.find(place); at != std::string::npos) {
        text.replace(at, place.size(), "stagecraft/tests/tools/schedule/serial.h");
      }
      CAPTURE(page, text);
      CHECK(compiled.find(with_single_blanks(text)) != std::string::npos);
      ++seen;
    }
  }
  CHECK(seen == 6);
}

TEST_CASE("every builder has its lines in docs/builders.md", "[tools][docs]") {
  const std::string page = page_text("builders.md");
  const std::size_t sources = page.find("\n## Memory and source\n");
  REQUIRE(sources != std::string::npos);
  const std::string sources_text = page.substr(sources, page.find("\n## ", sources + 1) - sources);
  for (const BuilderInfo& builder : builders()) {
    const std::size_t begin = page.find("\n| `" + std::string(builder.name) + "` |");
    CAPTURE(builder.name);
    REQUIRE(begin != std::string::npos);
    const std::string line = page.substr(begin, page.find('\n', begin + 1) - begin);
    for (const BuilderParameter& parameter : builder.parameters) {
      CHECK_THAT(line, ContainsSubstring(std::string(parameter.name) + "="));
    }
    CHECK_THAT(line, ContainsSubstring(std::string(builder.constraint)));
    CHECK_THAT(sources_text, ContainsSubstring("`" + std::string(builder.name) + "`"));
  }
}

TEST_CASE("docs/rules.md lists every rule in its table", "[tools][docs]") {
  const std::string page = page_text("rules.md");
  for (const std::string& rule : all_rules()) {
    std::string anchor = rule;
    anchor.front() = 'v';
    CHECK_THAT(page, ContainsSubstring("\n| [" + rule + "](#" + anchor + ") | "));
  }
}

TEST_CASE("docs/schedules.md has a line for every format", "[tools][docs]") {
  const std::string page = page_text("schedules.md");
  for (const ScheduleFormat& format : schedule_formats()) {
    CHECK_THAT(page, ContainsSubstring("\n" + line_of(format) + "\n"));
  }
}

TEST_CASE("serial runs one microbatch at a time", "[scheduler][builders]") {
  CHECK(serial(2, 2) == Schedule::parse("0F0 .   .   0B0 0F1 .   .   0B1\n"
                                        ".   1F0 1B0 .   .   1F1 1B1 .\n"));
  for (int ranks = 1; ranks <= 8; ++ranks) {
    const Schedule schedule = serial(ranks, 5);
    CHECK(validate(schedule, StageGraph::chain(ranks)).empty());
    CHECK(simulate(schedule, StageGraph::chain(ranks)).makespan == 5 * ranks * (1 + 2));
  }
}

TEST_CASE("the example's line in the registry makes its schedule", "[tools][docs]") {
  const BuilderInfo builder = registry_with_serial().front();
  CHECK(builder.build({.devices = 2, .microbatches = 1}) == serial(2, 1));
}

}  // namespace stagecraft::tests
