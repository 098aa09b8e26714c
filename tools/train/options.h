/// TrainOptions: what `stagecraft train` was asked to do.
///
/// Made by parse_train_options() from the command line, read by every other part of the
/// sub-command, never changed. What is checked here needs nothing but the arguments themselves; the
/// text, a model and its data, a schedule file and a checkpoint are judged where they are read.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "stagecraft/compiler/recompute.h"

namespace stagecraft::tools {

enum class OptimizerKind { AdamW, Sgd };
enum class RateKind { Constant, Cosine };
enum class WorkerKind { Threads, Processes };
/// Whose random numbers a run goes on with that loads a checkpoint; Same: they must be one.
enum class SeedChoice { Same, Checkpoint, Option };
/// In what operators compute; weights and optimizer are of the model's own types.
enum class Precision { Float32, BFloat16 };

struct TrainOptions {
  std::optional<std::string> model_file;  ///< none: a Llama, which learns `text`
  std::optional<std::string> data;        ///< folder of a model file's microbatches
  std::optional<std::string> cut;         ///< places or @FILE; none: balanced
  std::optional<std::string> cut_out;
  std::optional<std::string> costs_out;
  std::string text = "/usr/share/common-licenses/GPL-3";
  std::optional<std::int64_t> layers;  ///< none: 4, or one per stage where there are more
  std::int64_t dim = 128;
  std::int64_t heads = 4;
  std::int64_t ffn = 344;
  std::int64_t sequence = 64;
  std::int64_t microbatch_size = 4;
  std::optional<std::int64_t> microbatches;  ///< none: 8, or what the schedule file says
  std::optional<std::int64_t> stages;        ///< none: what the schedule makes of the ranks
  std::optional<std::int64_t> ranks;         ///< none: 4, or --stages, or what the file says
  std::optional<std::int64_t> chunks;        ///< stages per rank, for builders that leave it open
  std::map<std::string, std::string> set;    ///< further parameters of the builder
  std::string schedule = "1f1b";             ///< a builder's name or a file
  Precision precision = Precision::Float32;
  Recompute recompute;      ///< what runs again before its backward
  std::int64_t steps = 50;  ///< the step at which the run ends
  bool all_steps = false;   ///< instead: as many as `data` has
  OptimizerKind optimizer = OptimizerKind::AdamW;
  double rate = 3e-4;
  RateKind rate_kind = RateKind::Constant;
  std::int64_t warmup = 0;
  std::optional<double> weight_decay;  ///< none: 0.1 for AdamW, 0 for SGD
  double momentum = 0.0;
  std::optional<double> clip;
  std::uint64_t seed = 0;
  std::int64_t threads_per_worker = 1;
  WorkerKind workers = WorkerKind::Threads;
  std::optional<std::string> credentials;  ///< none: made for the run, where workers are processes
  std::optional<std::int64_t> eval_every;
  std::optional<std::string> save;
  std::optional<std::string> load;
  std::optional<std::string> save_dir;  ///< of periodic checkpoints; with --save-every, --resume's
  std::optional<std::int64_t> save_every;
  std::int64_t keep = 3;
  std::optional<std::string> resume;
  SeedChoice seed_from = SeedChoice::Same;
  std::optional<std::string> metrics;       ///< a folder
  std::optional<std::string> save_module;   ///< as torch::save(module) does
  std::optional<std::string> save_weights;  ///< a folder, or a .safetensors file
  std::optional<std::string> load_weights;  ///< likewise
  std::optional<std::string> trace;
  bool mirror = false;
  std::optional<double> step_deadline;  ///< seconds; none: the trainer's
  bool dry_run = false;
  bool verify = false;
  bool json = false;
  bool force = false;  ///< although memory seems not to suffice
};

/// The answer to `--help`.
struct HelpText {
  std::string text;
};

/// Returns the options, or the help if it was asked for.
/// Errors: UsageArgument, naming the option, what it expects and what was found.
[[nodiscard]] std::variant<TrainOptions, HelpText> parse_train_options(
    const std::vector<std::string>& arguments);

}  // namespace stagecraft::tools
