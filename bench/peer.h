/// Peer is another program that trains the same model. It runs beside ours, on the same machine in
/// the same state.
///
/// It is a Python script that takes --schedule NAME or --single, the sizes of the model (--dim,
/// --layers, --heads, --ffn, --seq, --microbatch, --microbatches), --world, --threads, --steps,
/// --warmup and --ideal-reps, and prints a line with "median step 1234.5 ms".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stagecraft::bench {

struct Peer {
  std::string python;  ///< an interpreter that has the script's imports
  std::string script;
};

/// Runs the peer and returns all that it prints. Errors: std::runtime_error, with the end of its
/// output, if it fails.
[[nodiscard]] std::string output_of(const Peer& peer, const std::vector<std::string>& arguments);

/// Runs the peer and returns its median step. Units: seconds. Errors: std::runtime_error, with the
/// end of its output, if it fails or prints no such line.
[[nodiscard]] double median_step_of(const Peer& peer, const std::vector<std::string>& arguments);

/// Finds the median step in the peer's output. Units: seconds. Errors: std::runtime_error.
[[nodiscard]] double parse_median_step(std::string_view printed);

}  // namespace stagecraft::bench
