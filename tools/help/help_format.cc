#include "stagecraft/tools/help/help_format.h"

#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "stagecraft/base/split.h"

namespace stagecraft::tools {
namespace {

constexpr std::size_t kPage = 100;
constexpr std::size_t kColumn = 30;  // where texts begin

/// Returns the words of a line in lines of at most `width` columns, each but the first indented.
std::string wrapped_line(std::string_view text, std::size_t width, std::size_t indent) {
  std::string lines;
  std::size_t used = 0;
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    if (used > 0 && used + 1 + word.size() > width) {
      lines += '\n' + std::string(indent, ' ');
      used = 0;
    }
    lines += (used > 0 ? " " : "") + word;
    used += (used > 0 ? 1 : 0) + word.size();
  }
  return lines;
}

/// Wraps each line of a text by itself; an indented line is an example, which stays.
std::string wrapped(const std::string& text) {
  std::string all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const bool is_drawn = line.starts_with(' ');
    all += (is_drawn ? line : wrapped_line(line, kPage, 0)) + '\n';
  }
  return all;
}

bool takes_value(const CLI::Option& option) {
  return option.get_type_size() != 0;
}

}  // namespace

std::string option_label(const CLI::Option& option) {
  if (option.get_positional()) {
    return option.get_name(/*positional=*/true, /*all_options=*/false);
  }
  const std::string names = option.get_name(/*positional=*/false, /*all_options=*/true);
  std::string label;
  for (const std::string_view name : split(names, ',')) {
    label += fmt::format("{}{}", label.empty() ? "" : ", ", name);
  }
  if (takes_value(option) && !option.get_type_name().empty()) {
    label += ' ' + option.get_type_name();
  }
  return label;
}

std::string option_text(const CLI::Option& option) {
  std::string text = option.get_description();
  if (takes_value(option) && !option.get_default_str().empty()) {
    text += fmt::format(" [{}]", option.get_default_str());
  }
  if (!option.get_envname().empty()) {
    text += fmt::format(" (env {})", option.get_envname());
  }
  return text;
}

std::string usage_text(const CLI::App& app) {
  constexpr std::string_view kPrefix = "Usage: ";
  const std::string line = CLI::Formatter().make_usage(&app, app.get_name());
  return line.substr(kPrefix.size(), line.find('\n') - kPrefix.size());
}

HelpFormat::HelpFormat() {
  label("Positionals", "Arguments");
}

std::string HelpFormat::make_group(std::string group,
                                   bool /*is_positional*/,
                                   std::vector<const CLI::Option*> options) const {
  std::string text = fmt::format("\n{}:\n", group);
  for (const CLI::Option* option : options) {
    const std::string label = fmt::format("  {}", option_label(*option));
    const bool fits = label.size() < kColumn;
    text +=
        fits ? fmt::format("{:<{}}", label, kColumn) : fmt::format("{}\n{:{}}", label, "", kColumn);
    text += wrapped_line(option_text(*option), kPage - kColumn, kColumn) + '\n';
  }
  return text;
}

std::string HelpFormat::make_help(const CLI::App* app,
                                  std::string name,
                                  CLI::AppFormatMode /*mode*/) const {
  std::string text = wrapped(app->get_description()) + make_usage(app, std::move(name));
  text += make_positionals(app);
  for (const std::string& group : app->get_groups()) {
    const auto options = app->get_options([&](const CLI::Option* option) {
      return option->get_group() == group && option->nonpositional();
    });
    if (!group.empty() && !options.empty()) {
      text += make_group(group, /*is_positional=*/false, options);
    }
  }
  return app->get_footer().empty() ? text : text + '\n' + wrapped(app->get_footer());
}

}  // namespace stagecraft::tools
