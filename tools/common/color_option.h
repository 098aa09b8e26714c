/// color_option adds --color to the commands that print in color. All of them obey Console::color,
/// which follows the terminal until a user says otherwise.
#pragma once

#include "stagecraft/tools/common/console.h"

namespace CLI {
class App;
}

namespace stagecraft::tools {

/// Adds --color auto|always|never. The parse sets `console.color`, which must outlive it; auto, or
/// no option, leaves it as it is (process_console).
void add_color_option(CLI::App& app, Console& console);

}  // namespace stagecraft::tools
