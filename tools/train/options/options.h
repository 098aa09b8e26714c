/// TrainOptions holds the options of `stagecraft train`, in the groups of its help.
///
/// parse_train_options() (parse_options.h) makes it, and it never changes: RunStart
/// (job/run_start.h) and Choice (decide/choice.h) hold what a run settles beyond it. The checks
/// here need only the arguments themselves. The text, a model and its data, a schedule file and a
/// checkpoint are judged where they are read.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stagecraft/actors/cluster/cluster.h"
#include "stagecraft/actors/executor/setup/trainer_options.h"
#include "stagecraft/compiler/stage/recompute.h"
#include "stagecraft/tools/train/work/work.h"
#include "stagecraft/tools/train/work/work_request.h"

namespace stagecraft::tools {

enum class RateKind { Constant, Cosine, Linear, Wsd, Plateau, Epoch };
enum class DecayKind { All, Matrices };
enum class WorkerKind { Threads, Processes, Joining };
/// SeedChoice selects the random numbers of a run after it loads a checkpoint; Same: both seeds
/// must be equal.
enum class SeedChoice { Same, Checkpoint, Option };

/// PipelineOptions says how a step is divided among ranks, and how its operators compute.
struct PipelineOptions {
  std::string schedule = "1f1b";            ///< a builder's name or a file
  std::optional<std::string> strategy;      ///< a file, instead of a schedule
  std::optional<std::string> strategy_out;  ///< file to write the run's strategy to
  std::int64_t dp = 1;                      ///< copies of the whole pipeline
  std::int64_t ep = 1;                      ///< copies that divide the experts; see copies()
  std::int64_t zero = 0;  ///< what copies share: 1, optimizer's state; 2, gradients; 3, weights
  std::optional<std::int64_t> bucket_bytes;  ///< most in a sum over copies; none: see sharing_of()
  std::optional<std::string> graph;          ///< the edges between stages, or @FILE
  std::optional<std::string> cut;            ///< places or @FILE; none: the work's own
  std::optional<std::string> cut_out;        ///< file to write the cut to
  std::optional<std::int64_t> ranks;         ///< in all; none: usual_ranks, stages, or the file's
  std::int64_t usual_ranks = 4;              ///< the hosts' number of places in a launch
  std::optional<std::int64_t> stages;        ///< none: derived from the schedule and the ranks
  std::optional<std::int64_t> chunks;        ///< stages per rank, for builders that leave it open
  std::map<std::string, std::string> set;    ///< further parameters of the builder
  /// The number for each copy of the pipeline; none: 8, or that of the schedule's file or data.
  std::optional<std::int64_t> microbatches;
  std::optional<std::int64_t> microbatch_size;  ///< samples; none: that of a file, or 4
  Recompute recompute = Recompute::nothing();   ///< parts that run again before their backward
  Precision precision = Precision::Float32;
  Dispatch dispatch = Dispatch::Plan;

  /// Returns the copies of the pipeline.
  [[nodiscard]] std::int64_t copies() const { return std::max(dp, ep); }
};

/// PlannerOptions names the planner that chooses the pipeline instead.
struct PlannerOptions {
  std::optional<std::string> name;    ///< a planner's, or auto
  std::vector<int> microbatch_sizes;  ///< samples, to choose from; none: automatic
};

/// CostFiles names costs of a run: those from before that predict it, and those that it measures.
struct CostFiles {
  std::optional<std::string> in;  ///< -: standard input
  std::optional<std::string> out;
};

struct OptimizerOptions {
  std::string name = "adamw";  ///< of kOptimizers (optimizer_table.h)
  double rate = 3e-4;
  RateKind rate_kind = RateKind::Constant;
  std::int64_t warmup = 0;
  std::optional<std::int64_t> decay_steps;  ///< of Wsd; none: a tenth of all steps
  std::optional<double> lr_factor;         ///< of Plateau and Epoch; none: the library's of Plateau
  std::optional<int> lr_patience;          ///< of Plateau; none: that of the library
  int lr_epochs = 1;                       ///< of Epoch: between two falls
  std::map<std::string, double> settings;  ///< of the optimizer, by name; those that were given
  DecayKind decay_on = DecayKind::Matrices;
  std::vector<std::string> freeze, no_decay;                     ///< patterns of parameter names
  std::vector<std::pair<std::string, std::int64_t>> freeze_for;  ///< such patterns, and updates
  std::optional<double> clip, clip_value;
  std::optional<double> average;  ///< decay of the averages of weights; none: there are none
  bool master_weights = false;    ///< in float32, of weights in half types
};

/// The number of steps if neither the options nor data give it.
inline constexpr std::int64_t kUsualSteps = 50;

struct RunOptions {
  std::optional<std::int64_t> steps;  ///< at which the run ends; none: 50, or those of the data
  std::int64_t accumulate = 1;        ///< batches of each step
  std::uint64_t seed = 0;
  std::optional<std::int64_t> eval_every;
  std::optional<std::string> eval_data;  ///< a folder, of a model file's evaluations
  std::int64_t log_every = 1;            ///< steps between lines of progress
  std::optional<double> step_deadline;   ///< seconds; none: the trainer's
  std::optional<std::string> serve;      ///< address and port at which the run can be watched
  bool step_by_step = false;             ///< show each column, and wait for a line before the next
  bool dry_run = false;
  bool verify = false;
  bool json = false;
  bool quiet = false;   ///< print errors, notes and the last line only
  bool report = false;  ///< print all tables at the end
  bool force = false;   ///< run even if memory seems not to suffice
  bool verbose = false;
};

/// KeepingOptions names the files that a run writes, and those from which it continues.
struct KeepingOptions {
  std::optional<std::string> run_dir;  ///< the folder of the run, where the others have places
  std::string logs;                    ///< in it: the folder of workers' logs; empty: none
  std::optional<std::string> save;
  std::optional<std::string> load;
  std::optional<std::string> save_dir;  ///< of checkpoints; with save_every resume's by default
  std::optional<std::int64_t> save_every;
  std::int64_t keep = 3;
  std::optional<std::string> resume;
  SeedChoice seed_from = SeedChoice::Same;
  std::optional<std::string> save_weights;  ///< a folder, or a .safetensors file
  bool save_averages = false;               ///< to that place, instead of the weights
  std::optional<std::string> load_weights;  ///< likewise
  std::optional<std::string> save_module;   ///< as torch::save(module) does
  std::optional<std::string> metrics;       ///< a folder
  std::optional<std::string> trace;
};

struct WorkerOptions {
  WorkerKind kind = WorkerKind::Threads;
  std::string device = "cpu";  ///< of each worker: TrainerOptions::device
  DeviceTransport device_transport = DeviceTransport::Nccl;
  DeviceReduce device_reduce = DeviceReduce::ByRank;
  std::int64_t threads = 1;                  ///< of each worker, inside one operator
  std::optional<std::int64_t> memory_limit;  ///< bytes, of one worker's steps
  std::optional<std::string> credentials;    ///< none: made for the run if workers are processes
  ProcessorChoice processor = ProcessorChoice::Own;
  bool read_data = false;           ///< text, images or data, at the same path on every host
  std::int64_t restarts = 0;        ///< most in the run; 0: the loss of a worker ends it
  double restart_window = 300.0;    ///< seconds in which a few restarts end it
  std::optional<bool> mirror;       ///< none: with restarts, if memory suffices
  std::vector<std::string> spares;  ///< hosts that take workers whose own host does not
  bool attach = false;              ///< to workers that have outlived an earlier command of the run
};

struct TrainOptions {
  ModelChoice model;
  DataPlaces data;
  PipelineOptions pipeline;
  PlannerOptions planner;
  CostFiles costs;
  OptimizerOptions optimizer;
  RunOptions run;
  KeepingOptions keeping;
  WorkerOptions workers;
};

}  // namespace stagecraft::tools
