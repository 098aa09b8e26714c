#include "stagecraft/tools/help/describe.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "stagecraft/base/split.h"
#include "stagecraft/tools/help/help_format.h"

namespace stagecraft::tools {
namespace {

using Object = nlohmann::ordered_json;

bool is_word(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '-';
  });
}

/// Returns the lower-case words of "none|stage|NAME,...": values that an option takes literally.
std::vector<std::string> choices_of(const std::string& value) {
  std::vector<std::string> choices;
  for (const std::string_view part : split(value, '|')) {
    if (is_word(part)) {
      choices.emplace_back(part);
    }
  }
  return choices;
}

Object describe_option(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) {
    names.push_back("-" + name);
  }
  for (const std::string& name : option.get_lnames()) {
    names.push_back("--" + name);
  }
  const std::string value = option.get_type_size() == 0 ? "" : value_name(option);
  const bool repeats = option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
  return {{"label", option_label(option)},
          {"names", names},
          {"value", value},
          {"choices", choices_of(value)},
          {"repeats", repeats},
          {"text", option_text(option)},
          {"group", option.get_group()}};
}

std::string text_of(const Object& object) {
  return object.dump(-1, ' ', false, Object::error_handler_t::replace) + '\n';
}

}  // namespace

std::string describe(const CLI::App& app, const std::string& behind) {
  Object options = Object::array();
  Object arguments = Object::array();
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty()) {
      (option->get_positional() ? arguments : options).push_back(describe_option(*option));
    }
  }
  return text_of({{"name", app.get_name()},
                  {"usage", usage_text(app, behind)},
                  {"about", app.get_description()},
                  {"notes", app.get_footer()},
                  {"arguments", arguments},
                  {"options", options}});
}

}  // namespace stagecraft::tools
