#include "stagecraft/scheduler/model/place_text.h"

#include <fmt/format.h>

namespace stagecraft {

std::string place_text(const Schedule& schedule, int row, int column) {
  return fmt::format("row {}, {} {}",
                     row,
                     schedule.form() == Schedule::Form::Array ? "column" : "position",
                     column);
}

}  // namespace stagecraft
