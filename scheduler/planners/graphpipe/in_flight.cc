#include "stagecraft/scheduler/planners/graphpipe/in_flight.h"

#include <algorithm>

namespace stagecraft::graphpipe {

int tabled_in_flight(Turns own, Turns next, int next_in_flight) {
  const int x = own.turn * own.size;
  const int y = next.turn * next.size;
  const int larger = std::max(own.size, next.size);
  if (own.size > y) {
    return next_in_flight + x - y + own.size;  // row 10
  }
  if (next.size > x) {
    return next_in_flight + next.size;  // row 9
  }
  if (x < y) {
    return next_in_flight + (larger < x ? 2 * larger : larger);  // rows 1, 2
  }
  if (x == y) {
    return next_in_flight + (larger < x ? 2 * larger : x);  // rows 7, 8
  }
  return next_in_flight + (larger < y ? x - y + 2 * larger : x);  // rows 3 to 6
}

int sufficient_in_flight(Turns own, Turns next, int next_in_flight) {
  const int larger = std::max(own.size, next.size);
  return next_in_flight + std::max(own.turn * own.size, larger) + larger;
}

int compute_in_flight(Turns own, Turns next, int next_in_flight) {
  const int samples = std::max(own.turn, next.turn) > 2
                          ? sufficient_in_flight(own, next, next_in_flight)
                          : tabled_in_flight(own, next, next_in_flight);
  return (samples + own.size - 1) / own.size * own.size;
}

int sink_in_flight(Turns own) {
  return own.turn * own.size;
}

}  // namespace stagecraft::graphpipe
