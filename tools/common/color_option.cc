#include "stagecraft/tools/common/color_option.h"

#include <string>

#include <CLI/CLI.hpp>

#include "stagecraft/tools/common/word_choice.h"

namespace stagecraft::tools {

void add_color_option(CLI::App& app, Console& console) {
  app.add_option_function<std::string>(
         "--color",
         [&console](const std::string& word) {
           console.color = word == "always" || (word == "auto" && console.color);
         },
         "print colors; auto: on a terminal, unless NO_COLOR is set [auto]")
      ->check(one_of({"auto", "always", "never"}))
      ->type_name("auto|always|never");
}

}  // namespace stagecraft::tools
