/// EvalRequest and PredictRequest hold the options of `stagecraft eval` and `stagecraft predict`.
/// They are made once and never changed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "stagecraft/tools/train/work/work.h"
#include "stagecraft/tools/train/work/work_request.h"

namespace stagecraft::tools {

struct EvalRequest {
  WorkRequest work;
  std::optional<std::uint64_t> seed;  ///< of a named model's data; none: its checkpoint's, or 0
  std::optional<std::int64_t> microbatches;  ///< of a batch; none: of the data, 1 of shards, or 8
  std::optional<std::int64_t> microbatch_size;  ///< samples; none: those of a file, or 4
  Precision precision = Precision::Float32;
  std::int64_t threads = 1;  ///< inside one operator
  bool json = false;
};

struct PredictRequest {
  WorkRequest work;                             ///< a model file
  std::string output;                           ///< a folder, or a .safetensors file
  std::optional<std::int64_t> microbatch_size;  ///< samples; none: those of a file, or 4
  Precision precision = Precision::Float32;
  std::int64_t threads = 1;  ///< inside one operator
  bool json = false;
};

/// EvalHelp is the answer to `--help`.
struct EvalHelp {
  std::string text;
};

/// Return the request, or the help if it was requested.
/// Errors: UsageArgument, naming the option, the expected value and the found one.
[[nodiscard]] std::variant<EvalRequest, EvalHelp> parse_eval_options(
    const std::vector<std::string>& arguments);
[[nodiscard]] std::variant<PredictRequest, EvalHelp> parse_predict_options(
    const std::vector<std::string>& arguments);

}  // namespace stagecraft::tools
