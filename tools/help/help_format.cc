#include "stagecraft/tools/help/help_format.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/split.h"
#include "stagecraft/tools/help/wrapped_text.h"

namespace stagecraft::tools {
namespace {

constexpr std::size_t kColumn = 30;  // where texts begin

bool takes_value(const CLI::Option& option) {
  return option.get_type_size() != 0;
}

}  // namespace

std::string value_name(const CLI::Option& option) {
  const std::string name = option.get_type_name();
  return name == "INT" || name == "UINT" ? "N" : name == "FLOAT" ? "X" : name;
}

std::string option_label(const CLI::Option& option) {
  if (option.get_positional()) {
    return option.get_name(/*positional=*/true, /*all_options=*/false);
  }
  const std::string names = option.get_name(/*positional=*/false, /*all_options=*/true);
  std::string label;
  for (const std::string_view name : split(names, ',')) {
    label += fmt::format("{}{}", label.empty() ? "" : ", ", name);
  }
  if (takes_value(option) && !value_name(option).empty()) {
    label += ' ' + value_name(option);
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

std::string usage_text(const CLI::App& app, const std::string& behind) {
  constexpr std::string_view kPrefix = "Usage: ";
  const std::string line = CLI::Formatter().make_usage(&app, app.get_name());
  return line.substr(kPrefix.size(), line.find('\n') - kPrefix.size()) +
         (behind.empty() ? "" : ' ' + behind);
}

HelpFormat::HelpFormat(std::size_t width, std::string behind)
    : width_(width), behind_(std::move(behind)) {
  label("Positionals", "Arguments");
}

std::string HelpFormat::make_usage(const CLI::App* app, std::string /*name*/) const {
  return fmt::format("Usage: {}\n", usage_text(*app, behind_));
}

std::string HelpFormat::make_group(std::string group,
                                   bool /*is_positional*/,
                                   std::vector<const CLI::Option*> options) const {
  std::string text = fmt::format("\n{}:\n", group);
  for (const CLI::Option* option : options) {
    text += wrapped_entry(option_label(*option), option_text(*option), kColumn, width_);
  }
  return text;
}

std::string HelpFormat::make_help(const CLI::App* app,
                                  std::string name,
                                  CLI::AppFormatMode /*mode*/) const {
  std::string text =
      wrapped_text(app->get_description(), width_) + make_usage(app, std::move(name));
  text += make_positionals(app);
  for (const std::string& group : app->get_groups()) {
    const auto options = app->get_options([&](const CLI::Option* option) {
      return option->get_group() == group && option->nonpositional();
    });
    if (!group.empty() && !options.empty()) {
      text += make_group(group, /*is_positional=*/false, options);
    }
  }
  return app->get_footer().empty() ? text : text + '\n' + wrapped_text(app->get_footer(), width_);
}

}  // namespace stagecraft::tools
