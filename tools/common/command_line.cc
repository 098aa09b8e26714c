#include "stagecraft/tools/common/command_line.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/nearest.h"
#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/help/describe.h"
#include "stagecraft/tools/help/help_format.h"

namespace stagecraft::tools {
namespace {

std::vector<std::string> long_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
  }
  return names;
}

void refuse_unknown(const CLI::App& app, const std::string& behind) {
  const std::vector<std::string> unknown = app.remaining();
  if (!behind.empty() && !unknown.empty() && !unknown.front().starts_with("-")) {
    wrong_usage(app.get_name(),
                fmt::format("expected {} behind the options, found '{}'", behind, unknown.front()));
  }
  const auto option = std::find_if(unknown.begin(), unknown.end(), [](const std::string& word) {
    return word.starts_with("-") && word != "-";
  });
  if (option != unknown.end()) {
    const std::string name = option->substr(0, option->find('='));
    throw Error(Errc::UsageArgument,
                fmt::format("expected an option of {}, found '{}'; {}see {} --help",
                            app.get_name(),
                            name,
                            did_you_mean(name, long_names(app)),
                            app.get_name()));
  }
  if (!unknown.empty()) {
    wrong_usage(app.get_name(),
                fmt::format("expected no further argument, found '{}'", unknown.front()));
  }
}

/// Returns the variable of the environment whose value the message is about; empty if none is.
std::string variable_of(const CLI::App& app, std::string_view message) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string variable = option->get_envname();
    // NOLINTNEXTLINE(concurrency-mt-unsafe): no thread was made yet
    const char* const value = variable.empty() ? nullptr : std::getenv(variable.c_str());
    if (value != nullptr && message.starts_with(option->get_name() + ": ") &&
        message.find(fmt::format("'{}'", value)) != std::string_view::npos) {
      return variable;
    }
  }
  return "";
}

/// Replaces CLI11's words by ours; keeps the part after the option's name, and names a variable in
/// its place if that gave the value.
std::string reworded(const CLI::App& app, const CLI::ParseError& error) {
  std::string message = error.what();
  message.erase(message.find_last_not_of("\n ") + 1);
  if (const std::string variable = variable_of(app, message); !variable.empty()) {
    return fmt::format("{} {}", variable, message.substr(message.find(": ") + 2));
  }
  if (const std::size_t required = message.find(" is required"); required != std::string::npos) {
    return fmt::format("expected {}, found none", message.substr(0, required));
  }
  const std::size_t colon = message.find(": ");
  const bool about_option = message.starts_with("-") && colon != std::string::npos;
  if (about_option && message.find("expects") != std::string::npos) {
    return message.erase(colon, 1);
  }
  if (about_option) {
    const bool missing = message.find("missing") != std::string::npos;
    return fmt::format(
        "{} expects one value, found {}", message.substr(0, colon), missing ? "none" : "several");
  }
  return message;
}

}  // namespace

std::optional<std::string> parse_command_line(CLI::App& app,
                                              const std::vector<std::string>& arguments,
                                              const std::string& behind) {
  app.get_help_ptr()->description("print this help");
  if (arguments.size() == 1 && arguments.front() == kDescribe) {
    return describe(app, behind);
  }
  app.allow_extras();
  app.formatter(std::make_shared<HelpFormat>(help_width(), behind));
  try {
    // CLI11 takes the arguments from the end of a vector.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    return app.help();
  } catch (const CLI::ParseError& error) {
    refuse_unknown(app, behind);
    wrong_usage(app.get_name(), reworded(app, error));
  }
  refuse_unknown(app, behind);
  return std::nullopt;
}

std::map<std::string, std::string> key_values(const std::string& command,
                                              const std::string& option,
                                              const std::vector<std::string>& words) {
  std::map<std::string, std::string> values;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) {
      wrong_usage(command, fmt::format("{} expects KEY=VALUE, found '{}'", option, word));
    }
    const std::string key = word.substr(0, equals);
    if (!values.emplace(key, word.substr(equals + 1)).second) {
      wrong_usage(command, fmt::format("{} names {} twice", option, key));
    }
  }
  return values;
}

void wrong_usage(const std::string& command, const std::string& message) {
  throw Error(Errc::UsageArgument, fmt::format("{}; see {} --help", message, command));
}

}  // namespace stagecraft::tools
