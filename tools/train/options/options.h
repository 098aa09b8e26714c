/// TrainOptions: the options of `stagecraft train`.
///
/// Made by parse_train_options() from the command line, and read by every other part of the
/// sub-command. The checks here need only the arguments themselves. The text, a model and its data,
/// a schedule file and a checkpoint are judged where they are read.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "stagecraft/actors/cluster/cluster.h"
#include "stagecraft/compiler/stage/recompute.h"
#include "stagecraft/tools/train/models/model_sizes.h"

namespace stagecraft::tools {

enum class RateKind { Constant, Cosine, Linear };
enum class DecayKind { All, Matrices };
enum class WorkerKind { Threads, Processes, Joining };
/// Which random numbers a run uses after it loads a checkpoint; Same: both seeds must be equal.
enum class SeedChoice { Same, Checkpoint, Option };
/// The type in which operators compute; weights and optimizer keep the model's own types.
enum class Precision { Float32, BFloat16 };

struct TrainOptions {
  std::string model = "llama";            ///< a name from models.h
  ModelSizes sizes;                       ///< of that model, with defaults filled in
  std::optional<std::string> images;      ///< a folder; none: drawn ones
  std::optional<std::string> model_file;  ///< replaces `model`
  std::optional<std::string> data;        ///< folder of a model file's microbatches
  std::optional<std::string> plan;        ///< the planner that chooses cut and schedule, or auto
  std::vector<int> microbatch_sizes;      ///< samples, for a plan to choose from; none: automatic
  bool keep_microbatches = false;         ///< their number or size was given, so a plan keeps it
  std::optional<std::string> cut;         ///< places or @FILE; none: markers, of a file balanced
  std::optional<std::string> cut_out;
  std::optional<std::string> costs;  ///< from before, to predict the run with; -: standard input
  std::optional<std::string> costs_out;
  std::string text = "/usr/share/common-licenses/GPL-3";
  bool read_on_workers = false;  ///< text, images or data, at the same path on every host
  std::int64_t microbatch_size = 4;
  bool size_given = false;                   ///< by --microbatch-size; else a cut's file may
  std::optional<std::int64_t> microbatches;  ///< none: 8, or as the schedule file says
  std::optional<std::int64_t> stages;        ///< none: what the schedule makes of the ranks
  std::optional<std::int64_t> ranks;         ///< none: usual_ranks, --stages, or as the file says
  std::int64_t usual_ranks = 4;              ///< the hosts' number of places in a launch
  std::optional<std::int64_t> chunks;        ///< stages per rank, for builders that leave it open
  std::map<std::string, std::string> set;    ///< further parameters of the builder
  std::string schedule = "1f1b";             ///< a builder's name or a file
  std::optional<std::string> graph;          ///< the edges between stages, or @FILE
  Precision precision = Precision::Float32;
  Recompute recompute;              ///< parts that run again before their backward
  std::int64_t steps = 50;          ///< the step at which the run ends
  bool all_steps = false;           ///< instead: as many as `data` has
  std::int64_t accumulate = 1;      ///< batches of each step
  std::string optimizer = "adamw";  ///< of kOptimizers (optimizer_table.h)
  double rate = 3e-4;
  RateKind rate_kind = RateKind::Constant;
  std::int64_t warmup = 0;
  std::map<std::string, double> settings;  ///< of the optimizer, by name; those that were given
  DecayKind decay_on = DecayKind::Matrices;
  std::vector<std::string> freeze, no_decay;  ///< patterns of parameter names
  std::optional<double> clip;
  std::uint64_t seed = 0;
  std::int64_t threads_per_worker = 1;
  std::optional<std::int64_t> memory_limit;  ///< MiB, of one worker's steps
  WorkerKind workers = WorkerKind::Threads;
  std::optional<std::string> credentials;  ///< none: made for the run if workers are processes
  ProcessorChoice processor = ProcessorChoice::Own;
  std::optional<std::int64_t> eval_every;
  std::optional<std::string> save;
  std::optional<std::string> load;
  std::optional<std::string> save_dir;  ///< of checkpoints; with --save-every --resume's by default
  std::optional<std::int64_t> save_every;
  std::int64_t keep = 3;
  std::optional<std::string> resume;
  std::optional<std::int64_t> resumed_at;  ///< the step of the checkpoint that --resume found
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
  bool force = false;  ///< run even if memory seems not to suffice
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
