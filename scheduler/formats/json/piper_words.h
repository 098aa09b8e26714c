/// piper_words lists the tags and passes of Piper's filters, for its reader and its writer.
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "stagecraft/scheduler/model/cell.h"

namespace stagecraft::formats {

inline constexpr std::string_view kStageTag = "PP";
inline constexpr std::string_view kPassTag = "PASS";

inline constexpr std::array<std::pair<std::string_view, CellKind>, 4> kPasses{
    {{"F", CellKind::Forward},
     {"B", CellKind::Backward},
     {"BI", CellKind::BackwardInput},
     {"BW", CellKind::BackwardWeight}}};

}  // namespace stagecraft::formats
