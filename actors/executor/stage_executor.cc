#include "stagecraft/actors/executor/stage_executor.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>

#include "stagecraft/actors/executor/commit/commit.h"
#include "stagecraft/actors/executor/commit/group_sum.h"
#include "stagecraft/actors/executor/device/accelerator.h"
#include "stagecraft/actors/executor/device/device.h"
#include "stagecraft/actors/executor/device/device_name.h"
#include "stagecraft/actors/executor/device/host_collective.h"
#include "stagecraft/actors/executor/device/libtorch_gate.h"
#include "stagecraft/actors/executor/device/step_times.h"
#include "stagecraft/actors/executor/device/stream_passing.h"
#include "stagecraft/actors/executor/nccl/nccl_collective.h"
#include "stagecraft/actors/executor/nccl/nccl_connector.h"
#include "stagecraft/actors/executor/nccl/nccl_links.h"
#include "stagecraft/actors/executor/run/accumulation.h"
#include "stagecraft/actors/executor/run/order_check.h"
#include "stagecraft/actors/executor/run/rank_programs.h"
#include "stagecraft/actors/executor/run/running_step.h"
#include "stagecraft/actors/executor/run/step_loop.h"
#include "stagecraft/actors/executor/stage/snapshot.h"
#include "stagecraft/actors/executor/step/foreign_error.h"
#include "stagecraft/base/process/process_end.h"
#include "stagecraft/compiler/libtorch/program_device.h"
#include "stagecraft/compiler/libtorch/thread_count.h"
#include "stagecraft/futures/collective/transport_collective.h"

namespace stagecraft {
namespace {

std::optional<Mirror> mirror_of(const RankSetup& setup,
                                const std::shared_ptr<Transport>& transport,
                                std::shared_ptr<LeftCopies> left) {
  return setup.options.mirror
             ? std::optional<Mirror>(std::in_place, setup, transport, std::move(left))
             : std::nullopt;
}

/// Returns the rank's device. Its work goes to the stream that computes.
std::unique_ptr<Device> device_of(const RankSetup& setup) {
  const c10::Device place = place_of(setup.options.device, setup.rank());
  if (!is_program_device(place) && setup.options.memory_limit) {
    throw Error(Errc::UsageArgument,
                fmt::format("{} bounds the memory of ranks on the CPU, and this rank is on {}: "
                            "leave it out",
                            kOption,
                            place.str()))
        .about("memory_limit");
  }
  std::unique_ptr<Device> device =
      is_program_device(place) ? cpu_device(setup.options.memory_limit) : accelerator_device(place);
  device->use(kCompute);
  return device;
}

std::shared_ptr<WaitBoard> board_of(const std::shared_ptr<Progress>& progress) {
  return {progress, &progress->waits};
}

/// Returns the groups of the share by members and stream, in the order of the plan's groups, which
/// all ranks share.
std::vector<NcclGroups> nccl_groups(const PlanShare& share) {
  std::vector<NcclGroups> groups;
  std::map<std::pair<std::vector<Rank>, std::string>, std::size_t> known;
  for (int number = 0; number < std::ssize(share.tables->groups); ++number) {
    const Group group = group_of(share, number);
    const auto start = std::ranges::find_if(share.list->instructions, [&](const Instruction& i) {
      return i.op == Op::Start && i.group == number;
    });
    if (group.ranks.size() < 2 || start == share.list->instructions.end()) {
      continue;
    }
    const auto [place, is_new] =
        known.try_emplace({group.ranks, share.list->streams[start->stream.index()]}, groups.size());
    if (is_new) {
      groups.push_back({.ranks = group.ranks, .ids = {}});
    }
    groups[place->second].ids.push_back(group.id);
  }
  return groups;
}

/// ByNccl is what a rank on an accelerator sends and sums by NCCL.
struct ByNccl {
  NcclConnector connector;
  NcclLinks links;
  NcclCollective collective;
  const std::vector<NcclGroups> groups;

  ByNccl(const RankSetup& setup,
         const c10::Device& place,
         const std::shared_ptr<Transport>& transport,
         std::shared_ptr<WaitBoard> board,
         Collective& by_host)
      : connector(place, transport, std::move(board), patience(setup.options)),
        links(setup.rank(), connector),
        collective(setup.rank(), connector, by_host, setup.options.device_reduce),
        groups(nccl_groups(setup.train)) {}

  /// `pairs`: those of the step's transfers.
  void connect(const Tag& step, const std::vector<RankPair>& pairs, bool trains) {
    if (pairs.empty() && (groups.empty() || !trains)) {
      return;  // no need to look for NCCL
    }
    connector.begin(step);
    links.connect(pairs);
    if (trains) {
      collective.connect(groups);
    }
  }
};

/// Returns null for a rank whose tensors cross in the host's memory.
std::unique_ptr<ByNccl> by_nccl(const RankSetup& setup,
                                const c10::Device& place,
                                const std::shared_ptr<Transport>& transport,
                                std::shared_ptr<WaitBoard> board,
                                Collective& by_host) {
  return is_program_device(place) || setup.options.device_transport == DeviceTransport::Host
             ? nullptr
             : std::make_unique<ByNccl>(setup, place, transport, std::move(board), by_host);
}

}  // namespace

struct StageExecutor::Impl {
  const RankSetup setup;
  const std::shared_ptr<Transport> transport;
  const std::shared_ptr<Progress> progress;
  const std::shared_ptr<StepValues> values;
  const std::unique_ptr<Device> device = device_of(setup);
  RankPrograms programs;
  Accumulation accumulation;
  StepTimes times{*device, setup.train.list->instructions.size()};
  const std::shared_ptr<SumStream> sum_stream;  ///< null: nothing to add there
  TransportCollective on_host;
  HostCollective by_host{on_host, transport};
  const std::unique_ptr<ByNccl> nccl;
  std::optional<Mirror> mirror;
  Commit commit;
  Exchanges exchanges{setup.train, collective()};
  TimelineRecorder recorder{setup.train.list->instructions.size(), *device};
  std::vector<InstructionTime> timeline;  // of the last step
  const RankParts parts;

  Impl(RankSetup s,
       std::shared_ptr<Transport> t,
       std::shared_ptr<Progress> p,
       std::shared_ptr<StepValues> v,
       std::shared_ptr<LeftCopies> left)
      : setup(std::move(s)),
        transport(std::move(t)),
        progress(std::move(p)),
        values(std::move(v)),
        programs(setup, device->place(), transport, board_of(progress)),
        sum_stream(is_program_device(device->place()) || setup.train.tables->groups.empty()
                       ? nullptr
                       : std::make_shared<SumStream>(device->place())),
        on_host(
            transport,
            board_of(progress),
            [stream = sum_stream] {
              set_own_thread_count(1);
              if (stream != nullptr) {
                stream->use();
              }
            },
            sum_stream ? std::make_shared<StreamPassing>(device->place()) : nullptr),
        nccl(by_nccl(setup, device->place(), transport, board_of(progress), by_host)),
        mirror(mirror_of(setup, transport, std::move(left))),
        commit(setup,
               collective(),
               progress->waits.clock(),
               times,
               programs.trained(),
               mirror ? &*mirror : nullptr),
        parts{.setup = setup,
              .transport = *transport,
              .device = *device,
              .progress = *progress,
              .values = *values,
              .times = times,
              .commit = commit,
              .exchanges = exchanges,
              .trained = programs.trained()} {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  [[nodiscard]] Collective& collective() {
    return nccl ? static_cast<Collective&>(nccl->collective) : by_host;
  }

  StepReport run(const StepOrder& order, const LocalRead& local) {
    check_order(order, setup, programs, accumulation.batches());
    if (order.accumulated == 0) {
      accumulation.drop();
    }
    const std::unique_ptr<Device::StepScope> scope = device->begin_step();
    RunningStep step{order, programs.at(order.program), setup.train.tables->microbatches};
    const Snapshot before(step.program.stages());
    times.begin_step();
    try {
      run(step, local);
      if (!step.trains()) {
        before.restore();
      } else if (!order.updates) {
        commit.refuse_non_finite_losses(step.losses.read());
      }
      StepReport report = finish(step);
      if (step.trains()) {
        accumulation.keep(before, order.updates);
      }
      return report;
    } catch (...) {
      Error error = failure(std::current_exception(), order);
      const auto also = [&](const auto& clean_up) {
        try {
          clean_up();
        } catch (...) {
          if (error.cause() == nullptr) {
            error.because(foreign_error(std::current_exception()));
          }
        }
      };
      if (nccl && !commit.has_voted()) {
        nccl->connector.abort();  // or work whose other end never comes would hold its stream
      }
      also([&] { device->synchronize(); });  // nothing uses the slots and buffers any more
      step.plan.clear();
      commit.drop_sums();
      exchanges.drop();
      also([&] {
        if (sum_stream) {
          sum_stream->synchronize();
        }
      });
      also([&] {
        device->use(kCompute);
        before.restore();
        if (step.trains()) {
          accumulation.drop();
        }
      });
      progress->end();
      throw error;
    }
  }

  [[nodiscard]] bool records(const RunningStep& step) const {
    return setup.options.record_timeline && step.trains();
  }

  void run(RunningStep& step, const LocalRead& local) {
    const auto wall = times.pass(&RankTimes::wall);
    begin(step, local);
    StepLoop(parts, step, records(step) ? &recorder : nullptr).run();
    device->synchronize();
    if (nccl && !commit.has_voted()) {
      // An abort ends transfers as if they had been made.
      transport->require_current(setup.plan_id, step.order.epoch);
    }
    device->use(kCompute);
    mirror_commit(step.order);
  }

  void begin(RunningStep& step, const LocalRead& local) {
    const StepOrder& order = step.order;
    step.plan.slots.begin_step();
    const Tag tag{.plan = setup.plan_id, .epoch = order.epoch, .submission = order.submission};
    const Sequence tags{
        .plan = setup.plan_id, .epoch = order.epoch, .submission = order.submission};
    commit.begin_step(order, tags);
    exchanges.begin_step(tags);
    timeline.clear();
    progress->program.store(order.program, std::memory_order_relaxed);
    if (nccl && !step.plan.bound.share->tables->has_overlaps) {
      nccl->connect(tag, step.plan.transfers.far_pairs(), step.trains());
      step.links = &nccl->links;
    }
    step.plan.transfers.begin(tag, local);
    if (records(step)) {
      recorder.begin_step();
      for (const std::size_t position : step.plan.bound.receives) {
        recorder.expect(position, step.plan.transfers.arrival(position));
      }
    }
  }

  void mirror_commit(const StepOrder& order) {
    if (mirror && commit.is_past_the_vote()) {
      const auto copying = times.pass(&RankTimes::update);
      mirror->committed(order.submission, order.step.value + 1, state());
    }
  }

  StepReport finish(RunningStep& step) {
    LoadedPlan& plan = step.plan;
    StepReport report{.rank = setup.rank(), .submission = step.order.submission};
    report.losses = step.losses.read();
    for (auto& [name, numbers] : step.counts.read()) {
      report.counts.push_back({name, std::move(numbers)});
    }
    report.times = times.take();
    report.times.peak_bytes = plan.slots.peak();
    report.times.peak_in_flight = plan.slots.peak_in_flight();
    report.times.memory = device->memory_use();
    if (commit.is_past_the_vote()) {
      report.committed = true;
      report.skipped = commit.skips();
      report.gradient_norm = commit.gradient_norm();
    }
    if (records(step)) {
      timeline = recorder.take();
    }
    leave_values(step, report.losses);
    progress->end();
    if (!std::exchange(plan.has_run, true)) {
      arm_libtorch_gate();
    }
    return report;
  }

  void leave_values(RunningStep& step, const std::vector<MicrobatchLoss>& losses) {
    MadeValues made = std::move(step.kept);
    const bool keeps_losses = std::ranges::any_of(
        programs.trained(), [](const StageRuntime& stage) { return stage.program->keeps_loss; });
    if (step.trains() && keeps_losses) {
      for (const MicrobatchLoss& loss : losses) {
        made[{kLossValue, loss.microbatch}] = at::scalar_tensor(loss.value, at::kDouble);
      }
    }
    if (!made.empty()) {
      values->put({setup.plan_id, setup.rank(), step.order.submission}, std::move(made));
    }
  }

  [[nodiscard]] Error failure(const std::exception_ptr& thrown, const StepOrder& order) const {
    Error error = foreign_error(thrown);
    error.with({.rank = setup.rank(), .step = order.step});
    if (!commit.is_past_the_vote()) {
      return error;
    }
    Error lost(Errc::WorkerLost,
               "a rank failed after the vote, inside the update: its weights are undefined; load a "
               "checkpoint");
    lost.with(error.context()).because(error);
    return lost;
  }

  [[nodiscard]] std::vector<StateTensor> state() const {
    std::vector<StateTensor> all;
    for (const StageRuntime& stage : programs.trained()) {
      stage.append_state(all);
    }
    return all;
  }
};

StageExecutor::StageExecutor(RankSetup setup,
                             std::shared_ptr<Transport> transport,
                             std::shared_ptr<Progress> progress,
                             std::shared_ptr<StepValues> values,
                             std::shared_ptr<LeftCopies> left) {
  set_own_thread_count(
      setup.options.threads_per_worker);  // before any other call into LibTorch on this thread
  impl_ = std::make_unique<Impl>(std::move(setup),
                                 std::move(transport),
                                 std::move(progress),
                                 std::move(values),
                                 std::move(left));
  arm_libtorch_gate();
}

StageExecutor::~StageExecutor() {
  impl_->values->end(impl_->setup.plan_id, impl_->setup.rank());
}

void StageExecutor::add_shape(RankShape shape) {
  impl_->programs.add(std::move(shape));
}

StepReport StageExecutor::run(const StepOrder& order, const LocalRead& local) {
  return impl_->run(order, local);
}

std::vector<InstructionTime> StageExecutor::take_timeline() {
  return std::exchange(impl_->timeline, {});
}

void StageExecutor::load(const std::vector<StateTensor>& state) {
  for (StageRuntime& stage : impl_->programs.trained()) {
    stage.load(state);
  }
}

std::vector<StateTensor> StageExecutor::gradients() const {
  std::vector<StateTensor> result;
  for (const StageRuntime& stage : impl_->programs.trained()) {
    for (StateTensor& gradient : stage.buckets.gradients()) {
      result.push_back(std::move(gradient));
    }
  }
  return result;
}

std::vector<StateTensor> StageExecutor::state() const {
  return impl_->state();
}

std::vector<StateTensor> StageExecutor::committed_state() const {
  std::vector<StateTensor> all = impl_->state();
  for (StateTensor& one : all) {
    one.tensor = impl_->accumulation.committed(one.tensor);
  }
  return all;
}

void StageExecutor::drop_accumulated() {
  impl_->accumulation.drop();
}

Mirror* StageExecutor::mirror() {
  return impl_->mirror ? &*impl_->mirror : nullptr;
}

}  // namespace stagecraft
