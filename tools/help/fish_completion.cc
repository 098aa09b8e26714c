#include "stagecraft/tools/help/completion_text.h"
#include "stagecraft/tools/help/completions.h"

namespace stagecraft::pages {
namespace {

std::string fish_quoted(const std::string& text) {
  return quoted(text, "\\'");
}

/// Returns the start of a line that holds only after this command.
std::string line_for(const CommandTree& command) {
  return "complete -c stagecraft -n " + fish_quoted("__stagecraft_at " + command.name);
}

std::string fish_value(const Option& option) {
  if (!takes_value(option)) {
    return "";
  }
  const std::string choices =
      option.choices.empty() ? "" : " -a " + fish_quoted(joined(option.choices, " "));
  if (takes_file(option)) {
    return " -r -F" + choices;
  }
  return takes_folder(option) ? " -x -a '(__fish_complete_directories)'" : " -x" + choices;
}

std::string fish_option(const CommandTree& command, const Option& option) {
  std::string text = line_for(command);
  for (const std::string& name : option.names) {
    text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  return text + fish_value(option) + " -d " + fish_quoted(option.text) + '\n';
}

std::string fish_lines(const CommandTree& command) {
  std::string text;
  for (const CommandTree& below : command.commands) {
    text +=
        line_for(command) + " -f -a " + below.word() + " -d " + fish_quoted(below.summary) + '\n';
  }
  for (const Option& argument : command.arguments_of) {
    if (!argument.choices.empty()) {
      text += line_for(command) + " -a " + fish_quoted(joined(argument.choices, " ")) + '\n';
    }
  }
  for (const Option& option : command.options) {
    text += fish_option(command, option);
  }
  return text;
}

constexpr const char* kFishBegin = R"(# fish completion for stagecraft, made by its build

# Succeeds behind this command, whatever options are between its words.
function __stagecraft_at
    set -l at stagecraft
    for word in (commandline -opc)[2..]
        if test "$word" = --
            set at stagecraft
        else if contains -- "$at $word" $__stagecraft_commands
            set at "$at $word"
        end
    end
    test "$at" = "$argv"
end

)";

}  // namespace

std::string fish_completion(const CommandTree& root) {
  std::string names, lines;
  for_each_command(root, [&](const CommandTree& command) {
    names += ' ' + fish_quoted(command.name);
    lines += fish_lines(command);
  });
  return kFishBegin + std::string("set -g __stagecraft_commands") + names + "\n\n" + lines;
}

}  // namespace stagecraft::pages
