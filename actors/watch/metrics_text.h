/// metrics_text writes the figures of a watched run in the text format of Prometheus, version
/// 0.0.4. docs/watch.md lists them.
///
/// Source: https://prometheus.io/docs/instrumenting/exposition_formats/
#pragma once

#include <string>

#include "stagecraft/actors/watch/watched_state.h"

namespace stagecraft {

[[nodiscard]] std::string metrics_text(const WatchedState& state);

}  // namespace stagecraft
