/// HelpFormat is the layout of `--help`: options in two columns, wrapped as wrapped_text.h says.
/// The default and the environment variable of an option follow its text: "[1] (env NAME)".
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace stagecraft::tools {

/// Returns the name of an option's value, "FILE". A whole number that has no name of its own is N,
/// another number X.
[[nodiscard]] std::string value_name(const CLI::Option& option);

/// Returns an option's names and the name of its value, "-o, --output FILE"; an argument's name.
[[nodiscard]] std::string option_label(const CLI::Option& option);

/// Returns the text of an option with its default and its environment variable.
[[nodiscard]] std::string option_text(const CLI::Option& option);

/// Returns "stagecraft import [OPTIONS] MODEL". `behind`: the part of the command line that the app
/// does not read, "-- PROGRAM", or empty.
[[nodiscard]] std::string usage_text(const CLI::App& app, const std::string& behind);

class HelpFormat : public CLI::Formatter {
 public:
  /// `behind`: as in usage_text().
  HelpFormat(std::size_t width, std::string behind);

  std::string make_usage(const CLI::App* app, std::string name) const override;

  std::string make_help(const CLI::App* app,
                        std::string name,
                        CLI::AppFormatMode mode) const override;
  std::string make_group(std::string group,
                         bool is_positional,
                         std::vector<const CLI::Option*> options) const override;

 private:
  const std::size_t width_;
  const std::string behind_;
};

}  // namespace stagecraft::tools
