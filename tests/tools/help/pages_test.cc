/// Tests the help of all commands, which is made alike, and the manual pages and the completions
/// that the build makes of it: they have every option that the help of a command lists, man renders
/// them, and shells complete with them.

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using Words = std::vector<std::string>;

constexpr const char* kPages = STAGECRAFT_BUILD_DIR "/share";

std::string page(const std::string& name) {
  return read_text_file(std::string(kPages) + "/" + name);
}

std::string joined(const Words& words, const std::string& between) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : between) + word;
  }
  return text;
}

/// Returns the lines that have the part, one after the other.
std::string lines_with(const std::string& part, const std::string& text) {
  std::string found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(part) != std::string::npos) {
      found += line + "\n";
    }
  }
  return found;
}

std::string help_of(const Words& command) {
  Words words{STAGECRAFT_COMMAND};
  words.insert(words.end(), command.begin() + 1, command.end());
  words.emplace_back("--help");
  const CommandResult result = run_command(words);
  REQUIRE(result.exit_code == 0);
  return result.out;
}

/// Returns the first groups of the matches in each line.
Words matches(const std::string& text, const std::string& pattern) {
  Words found;
  std::istringstream lines(text);
  const std::regex expression(pattern);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_search(line, match, expression)) {
      found.push_back(match[1]);
    }
  }
  return found;
}

/// A command and what it prints for --help.
struct DescribedCommand {
  Words words;
  std::string help;
};

/// Adds the command and all commands below it.
void add_commands(const Words& command, std::vector<DescribedCommand>& all) {
  const std::string help = help_of(command);
  all.push_back({command, help});
  const std::size_t list = help.find("\nCommands:\n");
  if (list == std::string::npos) {
    return;
  }
  const std::size_t begin = list + std::string("\nCommands:\n").size();
  for (const std::string& word :
       matches(help.substr(begin, help.find("\n\n", begin) - begin), "^  ([a-z]+)")) {
    Words below = command;
    below.push_back(word);
    add_commands(below, all);
  }
}

std::vector<DescribedCommand> all_commands() {
  std::vector<DescribedCommand> all;
  add_commands({"stagecraft"}, all);
  CHECK(all.size() >= 20);
  return all;
}

/// Returns the lines that are wider than 80 columns, but for the usage, which is one line.
Words wide_lines(const std::string& help) {
  Words wide = matches(help, "^(.{81,})$");
  std::erase_if(wide, [](const std::string& line) { return line.starts_with("Usage: "); });
  return wide;
}

/// Returns the lines with the word "member", but for names of programs: code in `quotes`.
Words lines_with_members(const std::string& text) {
  return matches(std::regex_replace(text, std::regex("`[^`\n]*`"), ""),
                 "^(.*\\b[Mm]embers?\\b.*)$");
}

/// Returns the entries of a help: an option or argument and its text, each on one line.
Words entries_in(const std::string& help) {
  Words entries;
  std::istringstream lines(help);
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
    if (indent == 2) {
      entries.push_back(line.substr(indent));
    } else if (indent > 2 && inside) {
      entries.back() += ' ' + line.substr(indent);
    }
    inside = indent >= 2 && indent < line.size();
  }
  return entries;
}

std::string man_escaped(std::string text) {
  return std::regex_replace(text, std::regex("-"), "\\-");
}

/// Returns what bash offers for the last of the words.
std::string completed_by_bash(const Words& words) {
  std::string line;
  for (const std::string& word : words) {
    line += "'" + word + "' ";
  }
  const CommandResult result = run_command(
      {"bash",
       "--norc",
       "-c",
       "source \"$1\"; COMP_WORDS=(" + line +
           "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _stagecraft; echo \"${COMPREPLY[*]}\"",
       "bash",
       std::string(kPages) + "/bash/stagecraft"});
  CAPTURE(result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.err.empty());
  return result.out;
}

bool is_installed(const std::string& program) {
  return run_command({"bash", "-c", "command -v " + program}).exit_code == 0;
}

}  // namespace

TEST_CASE("the help of every command has the same parts, on a page of 80 columns",
          "[tools][pages]") {
  for (const auto& [command, help] : all_commands()) {
    const std::string name = joined(command, " ");
    CAPTURE(name, help);
    CHECK(matches(help.substr(0, 1), "^([A-Z])$").size() == 1);
    const std::string first = help.substr(0, help.find("\n\n"));
    CHECK_THAT(first, ContainsSubstring(".\nUsage: " + name + " "));
    const std::size_t status = help.find("\nExit status: ");
    CHECK(status != std::string::npos);
    if (help.find("\nCommands:\n") == std::string::npos) {
      CHECK_THAT(help.substr(std::min(status, help.size())),
                 ContainsSubstring("\nExample: stagecraft "));
    }
    CHECK(wide_lines(help) == Words());
    CHECK(matches(help, " (INT|UINT|FLOAT)\\b") == Words());
    CHECK(lines_with_members(help) == Words());
  }
}

TEST_CASE("documents for users call the processes of a cluster by the words of their table",
          "[tools][pages]") {
  const std::filesystem::path source(STAGECRAFT_SOURCE_DIR);
  std::vector<std::filesystem::path> documents{source / "README.md", source / "CHANGELOG.md"};
  const Words for_developers{"architecture.md", "contributing.md", "plan-text.md", "protocol.md"};
  for (const auto& entry : std::filesystem::directory_iterator(source / "docs")) {
    const std::filesystem::path& document = entry.path();
    if (document.extension() == ".md" &&
        std::ranges::find(for_developers, document.filename().string()) == for_developers.end()) {
      documents.push_back(document);
    }
  }
  CHECK(documents.size() > 20);
  for (const std::filesystem::path& document : documents) {
    CAPTURE(document);
    CHECK(lines_with_members(read_text_file(document)) == Words());
  }
}

TEST_CASE("every option of every command is in its manual page and in all completions",
          "[tools][pages]") {
  const std::string bash = page("bash/stagecraft"), zsh = page("zsh/_stagecraft"),
                    fish = page("fish/stagecraft.fish");
  for (const auto& [command, help] : all_commands()) {
    const std::string name = joined(command, " ");
    CAPTURE(name);
    const std::string of_bash = joined(matches(lines_with("'" + name + "') options='", bash),
                                               "options='([^']*)'"),
                                       "") +
                                " ",
                      of_fish = lines_with("__stagecraft_at " + name + "'", fish);
    const std::string man = page("man1/" + joined(command, "-") + ".1");
    for (const std::string& option : matches(help, "^  (?:-[a-z], )?(--[a-z0-9-]+)")) {
      CAPTURE(option);
      CHECK_THAT(man, ContainsSubstring(man_escaped(option)));
      CHECK_THAT(of_bash, ContainsSubstring(option + " "));
      CHECK_THAT(zsh, ContainsSubstring(option + "["));
      CHECK_THAT(of_fish, ContainsSubstring(" -l " + option.substr(2) + " "));
    }
    if (command.size() > 1) {
      CHECK_THAT(page("man1/" + joined({command.begin(), command.end() - 1}, "-") + ".1"),
                 ContainsSubstring(".B " + command.back()));
    }
  }
}

TEST_CASE("a command that writes one file names it -o, --output", "[tools][pages]") {
  std::vector<DescribedCommand> commands;
  add_commands({"stagecraft"}, commands);
  const std::regex output("-o, --output (FILE|DIR).*"), other_output("(-o|--out|--output)[ ,].*"),
      written("-[^ ].* (FILE|DIR).* to write.*");
  std::set<std::string> with_output;
  for (const auto& [words, help] : commands) {
    const std::string command = joined(words, " ");
    Words outputs, files;
    for (const std::string& entry : entries_in(help)) {
      CAPTURE(command, entry);
      if (std::regex_match(entry, output)) {
        outputs.push_back(entry);
      } else {
        CHECK_FALSE(std::regex_match(entry, other_output));
      }
      if (std::regex_match(entry, written)) {
        files.push_back(entry);
      }
    }
    if (!outputs.empty()) {
      with_output.insert(command);
    }
    CAPTURE(command, files);
    CHECK((files.size() != 1 || files == outputs));
  }
  CHECK(with_output == std::set<std::string>{"stagecraft dag convert",
                                             "stagecraft dag show",
                                             "stagecraft predict",
                                             "stagecraft profile",
                                             "stagecraft schedule convert",
                                             "stagecraft schedule fix",
                                             "stagecraft schedule fmt",
                                             "stagecraft schedule make",
                                             "stagecraft schedule search"});
}

TEST_CASE("man renders every manual page without a warning", "[tools][pages]") {
  if (!is_installed("man")) {
    SKIP("there is no man");
  }
  const CommandResult result = run_command(
      {"bash",
       "-c",
       "for page in \"$1\"/man1/*.1; do LC_ALL=C.UTF-8 MANWIDTH=100 man --warnings -E UTF-8 -l "
       "\"$page\"; done",
       "bash",
       kPages});
  CHECK(result.exit_code == 0);
  CHECK(result.err.empty());
  CHECK_THAT(result.out,
             ContainsSubstring("STAGECRAFT-TRAIN(1)") &&
                 ContainsSubstring("stagecraft-train - train a model as a pipeline") &&
                 ContainsSubstring("--lr-schedule constant|cosine|linear|wsd|plateau"));
}

TEST_CASE("bash completes commands, options and values", "[tools][pages]") {
  CHECK(completed_by_bash({"stagecraft", "tr"}) == "train trace\n");
  CHECK(completed_by_bash({"stagecraft", "schedule", "sim"}) == "simulate\n");
  CHECK(completed_by_bash({"stagecraft", "train", "--save-w"}) == "--save-weights\n");
  CHECK(completed_by_bash({"stagecraft", "train", "--steps", "3", "--step-d"}) ==
        "--step-deadline\n");
  CHECK(completed_by_bash({"stagecraft", "train", "--model", "v"}) == "vit\n");
  CHECK(completed_by_bash({"stagecraft", "train", "--schedule", "zb-h"}) == "zb-h1 zb-h2\n");
  CHECK(completed_by_bash({"stagecraft", "schedule", "make", "gpi"}) == "gpipe\n");
  CHECK(completed_by_bash({"stagecraft", "train", "--save-dir", "/us"}) == "/usr\n");
  CHECK(completed_by_bash({"stagecraft", "launch", "--hosts", "x", "--", "trai"}) == "train\n");
  // No words: readline completes the name of a file.
  CHECK(completed_by_bash({"stagecraft", "train", "--text", "x"}) == "\n");
  CHECK(completed_by_bash({"stagecraft", "import", "x"}) == "\n");
  CHECK_THAT(completed_by_bash({"stagecraft", "train", ""}), ContainsSubstring("--dry-run"));
}

TEST_CASE("zsh reads its completion", "[tools][pages]") {
  if (!is_installed("zsh")) {
    SKIP("there is no zsh");
  }
  // Completion needs a terminal, so a shell inside the shell has one.
  const CommandResult result = run_command(
      {"zsh",
       "-f",
       "-c",
       "zmodload zsh/zpty; zpty shell zsh -f -i; "
       "zpty -w shell \"PS1=; fpath=($1 \\$fpath); autoload -Uz compinit; compinit -u -D\"; "
       "zpty -w -n shell $'stagecraft train --save-we\\t'; "
       "sleep 0; zpty -r shell text '*save-weights*' && echo complete; zpty -d shell",
       "zsh",
       std::string(kPages) + "/zsh"});
  CAPTURE(result.out, result.err);
  CHECK_THAT(result.out, ContainsSubstring("complete"));
}

TEST_CASE("fish completes commands, options and values", "[tools][pages]") {
  if (!is_installed("fish")) {
    SKIP("there is no fish");
  }
  const auto completed = [](const std::string& line) {
    const CommandResult result = run_command({"fish",
                                              "--no-config",
                                              "-c",
                                              "source $argv[1]; complete -C $argv[2]",
                                              std::string(kPages) + "/fish/stagecraft.fish",
                                              line});
    CHECK(result.err.empty());
    return result.out;
  };
  CHECK_THAT(completed("stagecraft tra"), ContainsSubstring("train\t"));
  CHECK_THAT(completed("stagecraft train --save-w"), ContainsSubstring("--save-weights"));
  CHECK_THAT(completed("stagecraft train --steps 3 --model v"), ContainsSubstring("vit"));
  CHECK_THAT(completed("stagecraft schedule make gpi"), ContainsSubstring("gpipe"));
  CHECK_THAT(completed("stagecraft launch --hosts x -- trai"), ContainsSubstring("train\t"));
}

}  // namespace stagecraft::tests
