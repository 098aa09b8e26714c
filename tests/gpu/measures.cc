#include "stagecraft/tests/gpu/measures.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <c10/core/CachingDeviceAllocator.h>
#include <torch/csrc/autograd/profiler_kineto.h>
#include <torch/torch.h>

#include "stagecraft/base/median.h"
#include "stagecraft/bench/seconds_of.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/stagecraft.h"

namespace stagecraft::gpu {
namespace {

constexpr int kWarmUp = 3;
constexpr double kNanosecond = 1e-9;

using Tensors = std::vector<torch::Tensor>;

/// Layers of two products each, in two stages.
struct Perceptrons : torch::nn::Module {
  explicit Perceptrons(const Workload& workload) {
    constexpr int kWider = 4;
    for (std::int64_t i = 0; i < 2 * workload.layers; ++i) {
      const bool is_up = i % 2 == 0;
      const std::string name = "product" + std::to_string(i);
      const std::int64_t in = is_up ? workload.width : kWider * workload.width;
      const std::int64_t out = is_up ? kWider * workload.width : workload.width;
      const double deviation = 1.0 / std::sqrt(static_cast<double>(in));
      weights.push_back(register_parameter(
          name + "_weight", (deviation * torch::randn({out, in})).to(workload.dtype)));
      weights.push_back(register_parameter(name + "_bias", torch::zeros({out}, workload.dtype)));
    }
  }
  static torch::Tensor layers(torch::Tensor x,
                              const Tensors& weights,
                              std::size_t begin,
                              std::size_t end) {
    for (std::size_t i = begin; i < end; i += 4) {
      const torch::Tensor up = torch::gelu(torch::linear(x, weights[i], weights[i + 1]));
      x = x + torch::linear(up, weights[i + 2], weights[i + 3]);
    }
    return x;
  }
  torch::Tensor forward(const torch::Tensor& x) {
    const std::size_t half = weights.size() / 8 * 4;
    const auto first = stage("first", [&] { return layers(x, weights, 0, half); });
    return stage("second", [&] { return layers(first, weights, half, weights.size()); });
  }
  Tensors weights;
};

torch::Tensor loss_of(const torch::Tensor& output, const torch::Tensor& label) {
  return torch::mse_loss(output.to(at::kFloat), label.to(at::kFloat));
}

/// The batch lies in pinned memory if the device is a GPU.
struct Subject {
  Subject(const Workload& w, const std::string& device) : workload(w) {
    torch::manual_seed(5);
    model = std::make_shared<Perceptrons>(w);
    const std::vector<std::int64_t> sizes{w.rows * w.microbatches, w.width};
    const bool is_pinned = c10::Device(device).is_cuda();
    const auto batch = [&] {
      const torch::Tensor drawn = torch::randn(sizes).to(w.dtype);
      return is_pinned ? drawn.pin_memory() : drawn;
    };
    inputs = batch();
    labels = batch();
  }
  [[nodiscard]] Program program() const {
    return compile(*model,
                   {.inputs = {inputs},
                    .labels = {labels},
                    .loss = loss_of,
                    .microbatches = static_cast<int>(workload.microbatches)});
  }

  Workload workload;
  std::shared_ptr<Perceptrons> model;
  torch::Tensor inputs, labels;
};

double median_seconds(int steps, const std::function<void()>& step) {
  std::vector<double> seconds;
  for (int i = 0; i < kWarmUp + steps; ++i) {
    const double of_step = bench::seconds_of(step);
    if (i >= kWarmUp) {
      seconds.push_back(of_step);
    }
  }
  return median(seconds);
}

/// Trains the same weights as LibTorch's users do, with the fused update.
class Plain {
 public:
  Plain(const Subject& subject, const c10::Device& device) : subject_(subject), device_(device) {
    for (const torch::Tensor& weight : subject.model->weights) {
      weights_.push_back(weight.detach().to(device).requires_grad_());
      means_.push_back(torch::zeros_like(weights_.back()));
      squares_.push_back(torch::zeros_like(weights_.back()));
      steps_.push_back(torch::zeros({}, torch::TensorOptions(device).dtype(at::kFloat)));
    }
  }
  double step() {
    const auto count = subject_.workload.microbatches;
    const auto moved = [&](const torch::Tensor& batch) {
      return batch.to(device_, /*non_blocking=*/true).chunk(count);
    };
    const auto inputs = moved(subject_.inputs), labels = moved(subject_.labels);
    torch::Tensor sum;
    for (std::size_t m = 0; m < inputs.size(); ++m) {
      const torch::Tensor loss =
          loss_of(Perceptrons::layers(inputs[m], weights_, 0, weights_.size()), labels[m]);
      (loss / static_cast<double>(count)).backward();
      sum = sum.defined() ? sum + loss.detach() : loss.detach();
    }
    Tensors gradients;
    for (torch::Tensor& weight : weights_) {
      gradients.push_back(weight.grad());
      weight.mutable_grad() = torch::Tensor();
    }
    const AdamW options{};
    {
      const torch::NoGradGuard no_grad;
      torch::_foreach_add_(steps_, 1);
      torch::_fused_adamw_(weights_,
                           gradients,
                           means_,
                           squares_,
                           {},
                           steps_,
                           options.lr,
                           options.beta1,
                           options.beta2,
                           options.weight_decay,
                           options.eps,
                           /*amsgrad=*/false,
                           /*maximize=*/false);
    }
    return sum.item<double>() / static_cast<double>(count);  // waits for the device
  }

 private:
  const Subject& subject_;
  const c10::Device device_;
  Tensors weights_, means_, squares_, steps_;
};

Schedule schedule_of(const Workload& workload, int ranks) {
  const auto count = static_cast<int>(workload.microbatches);
  if (ranks == 2) {
    return one_f_one_b(StageGraph::chain(2), count);
  }
  std::string row;
  for (int m = 0; m < count; ++m) {
    row += "0F" + std::to_string(m) + " 1F" + std::to_string(m) + " 1B" + std::to_string(m) +
           " 0B" + std::to_string(m) + " ";
  }
  return Schedule::parse(row);
}

/// Returns the time in which the rank's compute stream stood still between two instructions though
/// all that the later one waits for was there. The vote and the updates wait for the host.
double gaps(const std::vector<Instruction>& list, const std::vector<InstructionTime>& times) {
  std::map<InstructionId, std::int64_t> ends;
  std::int64_t gap = 0, before = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Instruction& instruction = list[i];
    ends[instruction.id] = times[i].end;
    const bool computes = instruction.op == Op::Run || instruction.op == Op::Accumulate;
    if (instruction.stream != kCompute || !computes) {
      continue;
    }
    std::int64_t ready = before;
    for (const InstructionId earlier : instruction.waits) {
      ready = std::max(ready, ends[earlier]);
    }
    gap += before == 0 ? 0 : std::max<std::int64_t>(0, times[i].start - ready);
    before = times[i].end;
  }
  return kNanosecond * static_cast<double>(gap);
}

Trainer trainer_of(const Program& program,
                   const Workload& workload,
                   int ranks,
                   bool recorded,
                   const std::string& device) {
  return {Cluster::local(ranks),
          program,
          schedule_of(workload, ranks),
          AdamW{},
          {.seed = 1, .device = device, .record_timeline = recorded}};
}

/// Returns what the process has allocated on the accelerator; 0 on the CPU.
std::int64_t held_bytes(const c10::Device& device) {
  return device.is_cpu() ? 0
                         : c10::getDeviceAllocator(device.type())
                               ->getDeviceStats(device.index())
                               .allocated_bytes[0]
                               .current;
}

/// Returns the time in which an accelerator worked in the call; 0 if the profiler sees none.
double busy_seconds(const std::function<void()>& step) {
  using namespace torch::profiler::impl;  // NOLINT(google-build-using-namespace): of the profiler
  const ProfilerConfig config(ProfilerState::KINETO);
  const std::set<ActivityType> activities{ActivityType::CPU, ActivityType::CUDA};
  torch::autograd::profiler::prepareProfiler(config, activities);
  torch::autograd::profiler::enableProfiler(config, activities);
  step();
  const auto result = torch::autograd::profiler::disableProfiler();
  std::vector<std::pair<std::uint64_t, std::uint64_t>> spans;
  for (const auto& event : result->events()) {
    if (event.deviceType() != c10::kCPU) {
      spans.emplace_back(event.startNs(), event.endNs());
    }
  }
  std::ranges::sort(spans);
  std::uint64_t busy = 0, until = 0;
  for (const auto& [start, end] : spans) {
    busy += end > until ? end - std::max(start, until) : 0;
    until = std::max(until, end);
  }
  return kNanosecond * static_cast<double>(busy);
}

}  // namespace

Measures measure(const std::string& device, const Workload& workload) {
  const std::int64_t held = held_bytes(c10::Device(device));
  const Subject subject(workload, device);
  const Program program = subject.program();
  const Batch inputs{subject.inputs}, labels{subject.labels};
  Measures found;
  {
    Trainer trainer = trainer_of(program, workload, 2, false, device);
    std::vector<RankTimes> ranks;
    found.two_ranks_seconds =
        median_seconds(workload.steps, [&] { ranks = trainer.step(inputs, labels).get().ranks; });
    for (const RankTimes& rank : ranks) {
      found.peak_bytes = std::max(found.peak_bytes, rank.memory.peak);
      found.billed_bytes += rank.peak_bytes;
    }
  }
  double first_loss = 0.0;
  {
    Trainer trainer = trainer_of(program, workload, 1, false, device);
    first_loss = trainer.step(inputs, labels).get().mean_loss;
    found.one_rank_seconds =
        median_seconds(workload.steps, [&] { (void)trainer.step(inputs, labels).get(); });
  }
  {
    Trainer trainer = trainer_of(program, workload, 2, true, device);
    StepResult result;
    (void)median_seconds(1, [&] { result = trainer.step(inputs, labels).get(); });
    for (int rank = 0; rank < 2; ++rank) {
      found.launch_gaps_part = std::max(found.launch_gaps_part,
                                        gaps(trainer.plan().list_of(Rank(rank)).instructions,
                                             result.timelines.at(static_cast<std::size_t>(rank))) /
                                            result.seconds);
    }
  }
  found.peak_bytes -= held;
  for (const torch::Tensor& parameter : subject.model->weights) {
    constexpr int kWeightGradientAndMoments = 4;
    found.billed_bytes += kWeightGradientAndMoments * static_cast<std::int64_t>(parameter.nbytes());
  }
  Plain plain(subject, c10::Device(device));
  const double plain_loss = plain.step();
  found.loss_differs_part = std::abs(first_loss - plain_loss) / std::abs(plain_loss);
  found.libtorch_seconds = median_seconds(workload.steps, [&] { (void)plain.step(); });
  return found;
}

std::optional<Busy> busy(const std::string& device, const Workload& workload) {
  const Subject subject(workload, device);
  const Program program = subject.program();
  const auto warmed_up = [](const std::function<void()>& step) {
    for (int i = 0; i < kWarmUp; ++i) {
      step();
    }
    return busy_seconds(step);
  };
  const auto of_ranks = [&](int ranks) {
    Trainer trainer = trainer_of(program, workload, ranks, false, device);
    return warmed_up([&] { (void)trainer.step({subject.inputs}, {subject.labels}).get(); });
  };
  Busy found{.one_rank = of_ranks(1), .two_ranks = of_ranks(2)};
  Plain plain(subject, c10::Device(device));
  found.libtorch = warmed_up([&] { (void)plain.step(); });
  return found.libtorch > 0.0 ? std::optional(found) : std::nullopt;
}

double host_seconds_per_instruction(const std::string& device, int steps) {
  const Workload tiny{
      .layers = 2, .width = 8, .rows = 4, .microbatches = 32, .dtype = c10::kFloat, .steps = steps};
  const Subject subject(tiny, device);
  const Program program = subject.program();
  Trainer trainer = trainer_of(program, tiny, 1, false, device);
  const double ours =
      median_seconds(steps, [&] { (void)trainer.step({subject.inputs}, {subject.labels}).get(); });
  Plain plain(subject, c10::Device(device));
  const double libtorchs = median_seconds(steps, [&] { (void)plain.step(); });
  return (ours - libtorchs) / static_cast<double>(trainer.plan().instruction_count());
}

}  // namespace stagecraft::gpu
