#include "stagecraft/tools/help/man_page.h"

#include <algorithm>
#include <sstream>

namespace stagecraft::pages {
namespace {

/// Returns the text so that the formatter takes nothing in it for a request.
std::string escaped(const std::string& text) {
  std::string all;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool begins_line = i == 0 || text[i - 1] == '\n';
    if (begins_line && (text[i] == '.' || text[i] == '\'')) {
      all += "\\&";
    }
    switch (text[i]) {
      case '\\':
        all += "\\e";
        break;
      case '-':
        all += "\\-";
        break;
      case '\'':
        all += "\\(aq";
        break;
      case '`':
        all += "\\(ga";
        break;
      case '^':
        all += "\\(ha";
        break;
      case '~':
        all += "\\(ti";
        break;
      default:
        all += text[i];
    }
  }
  return all;
}

/// Returns paragraphs; an indented line is an example, which keeps its line.
std::string paragraphs(const std::string& text) {
  std::string all;
  bool example = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const bool is_example = line.starts_with(' ');
    if (is_example != example) {
      all += is_example ? ".PP\n.nf\n" : ".fi\n";
      example = is_example;
    }
    all += line.empty() ? ".PP\n" : escaped(line) + '\n';
  }
  return example ? all + ".fi\n" : all;
}

std::string upper(std::string text) {
  std::ranges::transform(
      text, text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string entries(const std::vector<Option>& options) {
  std::string text;
  for (const Option& option : options) {
    text += ".TP\n.B " + escaped(option.label) + '\n' + escaped(option.text) + '\n';
  }
  return text;
}

/// Returns the options in the order of their groups.
std::string option_groups(const std::vector<Option>& options) {
  std::vector<std::string> groups;
  for (const Option& option : options) {
    if (std::ranges::find(groups, option.group) == groups.end()) {
      groups.push_back(option.group);
    }
  }
  std::string text;
  for (const std::string& group : groups) {
    std::vector<Option> members;
    std::ranges::copy_if(options, std::back_inserter(members), [&](const Option& option) {
      return option.group == group;
    });
    text += (groups.size() > 1 ? ".SS " + escaped(group) + '\n' : "") + entries(members);
  }
  return text;
}

std::string section(const std::string& title, const std::string& text) {
  return text.empty() ? "" : ".SH " + title + '\n' + text;
}

}  // namespace

std::string page_name(const CommandTree& command) {
  std::string name = command.name;
  std::ranges::replace(name, ' ', '-');
  return name;
}

std::string man_page(const CommandTree& command, const std::string& version) {
  const std::string name = page_name(command);
  std::string commands;
  std::string pages;
  for (const CommandTree& below : command.commands) {
    const std::string words =
        below.arguments.empty() ? below.word() : below.word() + ' ' + below.arguments;
    commands += ".TP\n.B " + escaped(words) + '\n' + escaped(below.summary) + '\n';
    pages += (pages.empty() ? ".BR " : ",\n.BR ") + escaped(page_name(below)) + " (1)";
  }
  const std::string parent = name.find('-') == std::string::npos
                                 ? ""
                                 : ".BR " + escaped(name.substr(0, name.rfind('-'))) + " (1)";
  return ".TH " + upper(escaped(name)) + " 1 \"\" \"Stagecraft " + version +
         "\" \"Stagecraft Manual\"\n" +
         section(
             "NAME",
             escaped(name) + " \\- " +
                 escaped(command.summary.empty() ? "train models as pipelines" : command.summary) +
                 '\n') +
         section("SYNOPSIS", ".B " + escaped(command.usage) + '\n') +
         section("DESCRIPTION", paragraphs(command.about)) + section("COMMANDS", commands) +
         section("ARGUMENTS", entries(command.arguments_of)) +
         section("OPTIONS", option_groups(command.options)) +
         section("NOTES", paragraphs(command.notes)) +
         section("SEE ALSO", (pages.empty() ? parent : pages) + '\n');
}

}  // namespace stagecraft::pages
