/// gloo gets figures of gloo, a part of torch.distributed, from a script. The user names the script
/// together with a Python that has torch.
///
/// Benchmarks of transports and collectives print them beside their own.
#pragma once

#include <CLI/App.hpp>
#include <nlohmann/json_fwd.hpp>

#include "stagecraft/bench/peer.h"

namespace stagecraft::bench {

/// Adds --peer and --peer-script, which fill in `peer`. It is empty if they are not given.
void add_gloo_options(CLI::App& app, Peer& peer);

/// Runs the script with `--json FILE` and returns what it writes there. Prints the rest of its
/// output to standard error. Errors: std::runtime_error, with the end of its output, if it fails.
[[nodiscard]] nlohmann::json gloo_figures(const Peer& peer);

}  // namespace stagecraft::bench
