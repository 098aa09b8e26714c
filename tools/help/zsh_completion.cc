#include <algorithm>

#include "stagecraft/tools/help/completion_text.h"
#include "stagecraft/tools/help/completions.h"

namespace stagecraft::pages {
namespace {

/// Returns the name of the function that completes a command.
std::string function_of(const CommandTree& command) {
  std::string name = "_" + command.name;
  std::ranges::replace(name, ' ', '_');
  return name;
}

/// Returns the text for the brackets of a specification.
std::string bracketed(const std::string& text) {
  std::string all;
  for (const char c : text) {
    all += (c == '[' || c == ']' || c == ':' || c == '\\' ? "\\" : "") + std::string(1, c);
  }
  return all;
}

/// Returns what completes a value or an argument: ":FILE:_files".
std::string zsh_action(const Option& option) {
  std::string action = " ";
  if (!option.choices.empty()) {
    action = takes_file(option) ? "{compadd -- " + joined(option.choices, " ") + "; _files}"
                                : "(" + joined(option.choices, " ") + ")";
  } else if (takes_file(option)) {
    action = "_files";
  } else if (takes_folder(option)) {
    action = "_files -/";
  }
  return ":" + bracketed(option.value.empty() ? option.label : option.value) + ":" + action;
}

std::string zsh_options(const CommandTree& command) {
  std::string text = "  _arguments -s -S";
  for (const Option& option : command.options) {
    for (const std::string& name : option.names) {
      text +=
          " \\\n    " + quoted((option.repeats ? "*" : "") + name + '[' + bracketed(option.text) +
                               ']' + (takes_value(option) ? zsh_action(option) : ""));
    }
  }
  int place = 0;
  for (const Option& argument : command.arguments_of) {
    const std::string where = argument.repeats ? "*" : std::to_string(++place);
    text += " \\\n    " + quoted(where + zsh_action(argument));
  }
  return text + '\n';
}

/// Returns the part of a function that completes the commands below, or calls theirs.
std::string zsh_commands(const CommandTree& command) {
  std::string list, calls;
  for (const CommandTree& below : command.commands) {
    list += "      " + quoted(below.word() + ':' + bracketed(below.summary)) + '\n';
    calls += "      " + below.word() + ") " + function_of(below) + " ;;\n";
  }
  return "  local line state\n"
         "  _arguments -C '1: :->command' '*::argument:->rest'\n"
         "  case $state in\n"
         "  command)\n    local -a commands=(\n" +
         list + "    )\n    _describe command commands ;;\n  rest)\n    case $line[1] in\n" +
         calls + "    esac ;;\n  esac\n";
}

}  // namespace

std::string zsh_completion(const CommandTree& root) {
  std::string text = "#compdef stagecraft\n# zsh completion for stagecraft, made by its build\n";
  for_each_command(root, [&](const CommandTree& command) {
    text += '\n' + function_of(command) + "() {\n" +
            (command.commands.empty() ? zsh_options(command) : zsh_commands(command)) + "}\n";
  });
  return text + "\n_stagecraft \"$@\"\n";
}

}  // namespace stagecraft::pages
