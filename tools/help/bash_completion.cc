#include "stagecraft/tools/help/completion_text.h"
#include "stagecraft/tools/help/completions.h"

namespace stagecraft::pages {
namespace {

/// Returns the branches of `case` for the values of a command's options. A value without a branch
/// of its own may be a file, which readline completes.
std::string bash_values(const CommandTree& command) {
  std::string text;
  for (const Option& option : command.options) {
    if (!takes_value(option)) {
      continue;
    }
    std::vector<std::string> patterns;
    for (const std::string& name : option.names) {
      patterns.push_back(quoted(command.name + ' ' + name));
    }
    text += "    " + joined(patterns, " | ") + ") ";
    if (!option.choices.empty()) {
      text += "words=" + quoted(joined(option.choices, " "));
    } else if (takes_folder(option)) {
      text += "mapfile -t COMPREPLY < <(compgen -d -- \"$current\"); return";
    } else {
      text += "return";
    }
    text += " ;;\n";
  }
  return text;
}

/// Returns the branch of `case` for what follows a command itself.
std::string bash_next(const CommandTree& command) {
  std::vector<std::string> options;
  for (const Option& option : command.options) {
    options.insert(options.end(), option.names.begin(), option.names.end());
  }
  std::vector<std::string> arguments = words_below(command);
  for (const Option& argument : command.arguments_of) {
    arguments.insert(arguments.end(), argument.choices.begin(), argument.choices.end());
  }
  if (arguments.empty() && !command.arguments_of.empty()) {
    arguments.emplace_back(":file");
  }
  return "    " + quoted(command.name) + ") options=" + quoted(joined(options, " ")) +
         " arguments=" + quoted(joined(arguments, " ")) + " ;;\n";
}

constexpr const char* kBashBegin = R"(# bash completion for stagecraft, made by its build

_stagecraft() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  local command=stagecraft words= options= arguments= word
  for word in "${COMP_WORDS[@]:1:COMP_CWORD - 1}"; do
    if [[ $word == -- ]]; then  # launch runs a program, which may be another command
      command=stagecraft
    fi
    case "$command $word" in
)";

constexpr const char* kBashValues = R"()
        command="$command $word" ;;
    esac
  done
  COMPREPLY=()
  case "$command $previous" in
)";

constexpr const char* kBashNext = R"(  esac
  case $command in
)";

constexpr const char* kBashEnd = R"(  esac
  if [[ -z $words ]]; then
    words=$options
    if [[ $current != -* && -n $arguments ]]; then
      words=$arguments
    fi
  fi
  if [[ $words != :file ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  fi
}

complete -o default -F _stagecraft stagecraft
)";

}  // namespace

std::string bash_completion(const CommandTree& root) {
  std::vector<std::string> names;
  std::string values, next;
  for_each_command(root, [&](const CommandTree& command) {
    if (command.name != root.name) {
      names.push_back("      " + quoted(command.name));
    }
    values += bash_values(command);
    next += bash_next(command);
  });
  return kBashBegin + joined(names, " | \\\n") + kBashValues + values + kBashNext + next + kBashEnd;
}

}  // namespace stagecraft::pages
