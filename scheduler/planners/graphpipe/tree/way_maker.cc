#include "stagecraft/scheduler/planners/graphpipe/tree/way_maker.h"

namespace stagecraft::graphpipe {

void WayMaker::keep(Way made, int first, int second, Front& to) {
  if (made.devices <= problem_->devices && to.takes(made, any_in_flight_)) {
    made.piece = pieces_.join(first, second);
    to.insert(made, any_in_flight_);
  }
}

void WayMaker::join(const Way& way, const Way& part, Front& to) {
  keep({.devices = way.devices + part.devices,
        .in_flight = part.in_flight + (shifts_ ? way.in_flight : 0),
        .turns = part.turns,
        .peak = std::max(way.peak, part.peak)},
       way.piece,
       part.piece,
       to);
}

void WayMaker::beside(const Front& some, const Front& others, Front& to) {
  for (const Way& one : some.ways()) {
    for (const Way& other : others.ways()) {
      // The part before feeds both, so both need the same turns. A branch without work yet has the
      // turns of the part after.
      if (one.turns != other.turns && other.piece != Pieces::kNone) {
        continue;
      }
      keep({.devices = one.devices + other.devices,
            .in_flight = std::max(one.in_flight, other.in_flight),
            .turns = one.turns,
            .peak = std::max(one.peak, other.peak)},
           one.piece,
           other.piece,
           to);
    }
  }
}

}  // namespace stagecraft::graphpipe
