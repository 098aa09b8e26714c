/// How near does a pipelined Llama come to what its schedule allows?
///
/// The ideal is the simulator's makespan for the same schedule, fed with forward, backward and
/// update times of each stage measured alone on one thread, in this run. Beside it: what a second
/// thread inside the operators gains on one rank and in a plain training loop.
///
///   train_llama [--workers threads|processes] [--peer PYTHON --peer-script FILE]
///
/// With a peer (peer.h), the same model trains in turns with it in the same run: 1F1B and ZB-V
/// here, its 1F1B and interleaved schedules and one process of two intra-op threads there.
#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/torch.h>

#include "stagecraft/actors/executor/backward.h"
#include "stagecraft/actors/executor/stage_runtime.h"
#include "stagecraft/bench/hardware.h"
#include "stagecraft/bench/peer.h"
#include "stagecraft/compiler/compiled_program.h"
#include "stagecraft/compiler/thread_count.h"
#include "stagecraft/examples/models/llama.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/zb_v.h"
#include "stagecraft/scheduler/simulate.h"
#include "stagecraft/stagecraft.h"

namespace sc = stagecraft;
using Tensors = std::vector<torch::Tensor>;

namespace {

constexpr int kStages = 2, kMicrobatches = 8, kRepetitions = 12, kSteps = 10;
constexpr int kThreadRounds = 3, kThreadSteps = 4;
constexpr int kPeerRounds = 3, kPeerSteps = 8, kPeerWarmUp = 2;
constexpr std::int64_t kVocabulary = 96, kSequence = 128, kSequences = 4;
constexpr double kGoal = 1.05;  // times the ideal

struct Options {
  bool processes = false;
  std::optional<sc::bench::Peer> peer;
};

sc::Cluster make_cluster(const Options& options, int ranks) {
  return options.processes ? sc::Cluster::spawn(ranks) : sc::Cluster::local(ranks);
}

double seconds_of(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

torch::Tensor cross_entropy(torch::Tensor logits, torch::Tensor targets) {
  return torch::nn::functional::cross_entropy(logits.flatten(0, 1), targets.flatten());
}

struct StageTimes {
  double forward = 0.0, backward = 0.0, update = 0.0;
};

/// One stage alone: what a rank does for a microbatch, and its update.
StageTimes time_stage(const sc::Program& program, const sc::StageProgram& stage) {
  const sc::CompiledProgram& compiled = program.compiled();
  const sc::Optimizer optimizer = sc::AdamW{.lr = 0.0};
  sc::StageRuntime runtime(stage, optimizer);
  runtime.load(sc::initial_state(compiled.graph));
  sc::Bucket& bucket = runtime.bucket;
  Tensors inputs;
  for (const sc::StageInput& input : stage.inputs) {
    const sc::Value& value = stage.at(input.value);
    inputs.push_back(value.dtype == at::kLong ? torch::randint(kVocabulary, value.sizes)
                                              : torch::randn(value.sizes));
  }
  std::vector<double> forward, backward, update;
  for (int repetition = 0; repetition < kRepetitions; ++repetition) {
    sc::Saved saved;
    Tensors arguments, gradients;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      arguments.push_back(stage.inputs[i].owes_gradient ? inputs[i].detach().requires_grad_()
                                                        : inputs[i]);
      if (stage.inputs[i].owes_gradient) {
        saved.leaves.push_back(arguments.back());
      }
    }
    forward.push_back(seconds_of([&] {
      sc::ChunkResult result = runtime.chunks.front().interpreter.run(arguments, runtime.state, {});
      saved.outputs = std::move(result.outputs);
      saved.loss = std::move(result.loss);
    }));
    for (const torch::Tensor& output : saved.outputs) {
      gradients.push_back(torch::randn_like(output) * 1e-3);
    }
    backward.push_back(seconds_of([&] {
      bucket.accumulate(sc::backward(saved, gradients, bucket.gradient_edges()).parameters);
      saved = {};
    }));
    update.push_back(seconds_of([&] {
      (void)bucket.average(kMicrobatches);
      bucket.update(0.0, 1.0, repetition + 1);
    }));
  }
  return {sc::bench::median(forward), sc::bench::median(backward), sc::bench::median(update)};
}

double ideal_step(const sc::Program& program, const sc::Schedule& schedule) {
  sc::Costs costs;
  double update = 0.0;
  for (const sc::StageProgram& stage : program.compiled().partition.stages) {
    const StageTimes times = time_stage(program, stage);
    fmt::print("  stage {} alone: forward {:.1f} ms, backward {:.1f} ms, update {:.1f} ms\n",
               stage.id.value,
               times.forward * 1e3,
               times.backward * 1e3,
               times.update * 1e3);
    costs.stages.each.push_back({.forward = times.forward, .backward = times.backward});
    update = std::max(update, times.update);
  }
  return sc::simulate(schedule, program.stage_graph(), costs).makespan + update;
}

sc::examples::LlamaOptions llama_options(int stages) {
  return {.vocabulary = kVocabulary,
          .layers = 8,
          .dim = 256,
          .heads = 8,
          .ffn = 688,
          .sequence = kSequence,
          .stages = stages};
}

sc::Program compile_llama(sc::examples::Llama& model,
                          const torch::Tensor& tokens,
                          int microbatches = kMicrobatches) {
  return sc::compile(model,
                     {.inputs = {tokens},
                      .labels = {tokens},
                      .loss = cross_entropy,
                      .microbatches = microbatches});
}

void measure_pipeline(const Options& options) {
  sc::examples::Llama model(llama_options(kStages));
  const auto tokens = torch::randint(kVocabulary, {kSequences * kMicrobatches, kSequence});
  const sc::Program program = compile_llama(model, tokens);
  const sc::Schedule schedule = sc::one_f_one_b(program.stage_graph(), kMicrobatches);
  const sc::Cluster cluster = make_cluster(options, kStages);
  sc::Trainer trainer(cluster, program, schedule, sc::AdamW{});
  std::vector<double> steps;
  const double before = ideal_step(program, schedule);
  (void)trainer.step({tokens}, {tokens}).get();
  for (int step = 0; step < kSteps; ++step) {
    steps.push_back(seconds_of([&] { (void)trainer.step({tokens}, {tokens}).get(); }));
  }
  const double after = ideal_step(program, schedule);
  const double ideal = (before + after) / 2;
  const double best = *std::min_element(steps.begin(), steps.end());
  fmt::print(
      "step {:.0f} ms (best {:.0f}), ideal {:.0f} ms (before {:.0f}, after {:.0f}); ratio {:.3f}, "
      "best {:.3f} (goal {}); "
      "{:.0f} tokens/s\n",
      sc::bench::median(steps) * 1e3,
      best * 1e3,
      ideal * 1e3,
      before * 1e3,
      after * 1e3,
      sc::bench::median(steps) / ideal,
      best / ideal,
      kGoal,
      static_cast<double>(tokens.numel()) / sc::bench::median(steps));
}

/// Seconds of each step but the first, which makes pools and optimizer state.
std::vector<double> steps_of(const std::function<void()>& step) {
  step();
  std::vector<double> seconds;
  for (int i = 0; i < kThreadSteps; ++i) {
    seconds.push_back(seconds_of(step));
  }
  return seconds;
}

std::vector<double> trainer_steps(const sc::Program& program,
                                  const torch::Tensor& tokens,
                                  int threads) {
  auto cluster = sc::Cluster::local(1);
  sc::Trainer trainer(cluster,
                      program,
                      sc::one_f_one_b(program.stage_graph(), kMicrobatches),
                      sc::AdamW{},
                      {.threads_per_worker = threads});
  return steps_of([&] { (void)trainer.step({tokens}, {tokens}).get(); });
}

/// The loop that a program without Stagecraft runs, on a thread of its own so that its pool ends
/// with it.
std::vector<double> plain_steps(sc::examples::Llama& model,
                                const torch::Tensor& tokens,
                                int threads) {
  std::vector<double> seconds;
  std::thread([&] {
    sc::set_own_thread_count(threads);
    torch::optim::AdamW optimizer(model->parameters());
    seconds = steps_of([&] {
      optimizer.zero_grad();
      for (const torch::Tensor& microbatch : tokens.chunk(kMicrobatches)) {
        (cross_entropy(model->forward(microbatch), microbatch) / kMicrobatches).backward();
      }
      optimizer.step();
    });
  }).join();
  return seconds;
}

/// One rank, so that a second thread has a processor to itself.
void measure_threads() {
  sc::examples::Llama model(llama_options(1));
  const auto tokens = torch::randint(kVocabulary, {kSequences * kMicrobatches, kSequence});
  const sc::Program program = compile_llama(model, tokens);
  std::map<int, std::vector<double>> trainer, plain;
  for (int round = 0; round < kThreadRounds; ++round) {
    for (const int threads : {1, 2}) {
      std::ranges::copy(trainer_steps(program, tokens, threads),
                        std::back_inserter(trainer[threads]));
      std::ranges::copy(plain_steps(model, tokens, threads), std::back_inserter(plain[threads]));
    }
  }
  const auto compare = [](const char* what, const std::map<int, std::vector<double>>& steps) {
    const double one = sc::bench::median(steps.at(1)), two = sc::bench::median(steps.at(2));
    fmt::print("  {}: step {:.0f} ms with 1 thread, {:.0f} ms with 2; {:.2f} x\n",
               what,
               one * 1e3,
               two * 1e3,
               one / two);
  };
  fmt::print("threads inside an operator, 1 rank:\n");
  compare("trainer, --threads-per-worker", trainer);
  compare("plain loop", plain);
}

/// One of ours, ready for its next steps.
struct Contender {
  std::string name;
  sc::Program program;
  sc::Trainer trainer;
  std::vector<double> seconds;  ///< of each step
};

std::unique_ptr<Contender> contender(std::string name,
                                     const sc::Cluster& cluster,
                                     int stages,
                                     const torch::Tensor& tokens,
                                     const std::function<sc::Schedule(const sc::Program&)>& make) {
  sc::examples::Llama model(llama_options(stages));
  sc::Program program = compile_llama(model, tokens);
  sc::Trainer trainer(cluster, program, make(program), sc::AdamW{});
  return std::make_unique<Contender>(
      Contender{std::move(name), std::move(program), std::move(trainer), {}});
}

std::vector<std::string> peer_arguments(const std::vector<std::string>& mode) {
  const sc::examples::LlamaOptions size = llama_options(kStages);
  std::vector<std::string> arguments = mode;
  const auto add = [&](const char* option, std::int64_t value) {
    arguments.insert(arguments.end(), {option, std::to_string(value)});
  };
  add("--dim", size.dim);
  add("--layers", size.layers);
  add("--heads", size.heads);
  add("--ffn", size.ffn);
  add("--seq", kSequence);
  add("--microbatch", kSequences);
  add("--microbatches", kMicrobatches);
  add("--world", kStages);
  add("--steps", kPeerSteps);
  add("--warmup", kPeerWarmUp);
  add("--ideal-reps", 0);
  return arguments;
}

/// In turns with ours, whose workers are idle while the peer runs.
void measure_peer(const Options& options) {
  const sc::Cluster cluster = make_cluster(options, kStages);
  const auto tokens = torch::randint(kVocabulary, {kSequences * kMicrobatches, kSequence});
  std::vector<std::unique_ptr<Contender>> ours;
  ours.push_back(contender("1f1b", cluster, kStages, tokens, [](const sc::Program& program) {
    return sc::one_f_one_b(program.stage_graph(), kMicrobatches);
  }));
  ours.push_back(contender("zb-v", cluster, 2 * kStages, tokens, [](const sc::Program&) {
    return sc::zb_v(kStages, kMicrobatches);
  }));
  const std::vector<std::pair<std::string, std::vector<std::string>>> theirs = {
      {"1f1b", {"--schedule", "1f1b", "--threads", "1"}},
      {"interleaved", {"--schedule", "interleaved", "--threads", "1"}},
      {"one process, 2 threads", {"--single", "--threads", "2"}}};
  std::vector<std::vector<double>> peer_seconds(theirs.size());
  for (int round = 0; round < kPeerRounds; ++round) {
    for (const auto& own : ours) {
      for (int step = 0; step < kPeerSteps; ++step) {
        const double seconds =
            seconds_of([&] { (void)own->trainer.step({tokens}, {tokens}).get(); });
        if (step >= kPeerWarmUp) {
          own->seconds.push_back(seconds);
        }
      }
    }
    for (std::size_t i = 0; i < theirs.size(); ++i) {
      peer_seconds[i].push_back(
          sc::bench::median_step_of(*options.peer, peer_arguments(theirs[i].second)));
    }
  }
  double best = sc::bench::median(peer_seconds.front());
  fmt::print("beside the peer, {} rounds in turns:\n", kPeerRounds);
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    const double seconds = sc::bench::median(peer_seconds[i]);
    best = std::min(best, seconds);
    fmt::print("  peer, {}: step {:.0f} ms\n", theirs[i].first, seconds * 1e3);
  }
  for (const auto& own : ours) {
    const double seconds = sc::bench::median(own->seconds);
    fmt::print("  ours, {}: step {:.0f} ms", own->name, seconds * 1e3);
    for (std::size_t i = 0; i < theirs.size(); ++i) {
      fmt::print(", {:.2f} x as fast as {}",
                 sc::bench::median(peer_seconds[i]) / seconds,
                 theirs[i].first);
    }
    fmt::print("; {:.2f} x as fast as the best\n", best / seconds);
  }
}

std::optional<Options> parse(int argc, char** argv) {
  Options options;
  sc::bench::Peer peer;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view option = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    if (option == "--workers" && (value == "threads" || value == "processes")) {
      options.processes = value == "processes";
    } else if (option == "--peer" && !value.empty()) {
      peer.python = value;
    } else if (option == "--peer-script" && !value.empty()) {
      peer.script = value;
    } else {
      return std::nullopt;
    }
  }
  if (peer.python.empty() != peer.script.empty()) {
    return std::nullopt;
  }
  if (!peer.python.empty()) {
    options.peer = peer;
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<Options> options = parse(argc, argv);
  if (!options) {
    fmt::print(stderr,
               "usage: train_llama [--workers threads|processes] [--peer PYTHON --peer-script "
               "FILE]\n");
    return 2;
  }
  at::set_num_threads(1);
  fmt::print(
      "{}\nLlama, dim 256, 8 layers, ffn 688, seq {}, microbatch {} x {}, {} stages, 1F1B, {} with "
      "1 thread each\n",
      sc::bench::hardware(),
      kSequence,
      kSequences,
      kMicrobatches,
      kStages,
      options->processes ? "worker processes" : "threads");
  measure_pipeline(*options);
  if (options->peer) {
    try {
      measure_peer(*options);
    } catch (const std::runtime_error& error) {
      fmt::print(stderr, "{}\n", error.what());
      return 1;
    }
  }
  measure_threads();
}
