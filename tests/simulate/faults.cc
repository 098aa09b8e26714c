#include "stagecraft/tests/simulate/faults.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace stagecraft::simulation {

using namespace std::chrono_literals;

namespace {

/// How often a kind is drawn, of all weights.
struct Row {
  Fault::Kind kind;
  std::string_view name;
  std::uint64_t weight;
};

/// Copies of states have as many bytes, and little else has.
constexpr std::size_t kManyBytes = 1024;

constexpr Row kRows[] = {
    {Fault::Kind::Kill, "kill", 5},
    {Fault::Kind::Stop, "stop", 5},
    {Fault::Kind::Hold, "hold", 6},
    {Fault::Kind::BreakControl, "break-control", 3},
    {Fault::Kind::BreakData, "break-data", 6},
    {Fault::Kind::Part, "part", 4},
    {Fault::Kind::StopDriver, "stop-driver", 2},
    {Fault::Kind::KillDriver, "kill-driver", 1},
    {Fault::Kind::Refuse, "refuse-memory", 3},
    {Fault::Kind::Slow, "slow", 3},
    {Fault::Kind::Stranger, "stranger", 2},
    {Fault::Kind::EndMachine, "end-machine", 1},
    {Fault::Kind::FillDisk, "fill-disk", 2},
    {Fault::Kind::FailDisk, "fail-disk", 3},
    {Fault::Kind::SlowDisk, "slow-disk", 2},
    {Fault::Kind::Jump, "clock-jump", 0},  // as strike_clocks draws
};

Fault::Kind draw_kind(Random& random) {
  std::uint64_t all = 0;
  for (const Row& row : kRows) {
    all += row.weight;
  }
  std::uint64_t drawn = random.below(all);
  for (const Row& row : kRows) {
    if (drawn < row.weight) {
      return row.kind;
    }
    drawn -= row.weight;
  }
  return Fault::Kind::Kill;
}

/// Draws the kind of a fault that comes soon after `last`. Some pairs matter more than others: a
/// rank ends before its keeper has its copy; a file is damaged while the next driver reads it.
Fault::Kind draw_next_kind(Random& random, const Fault& last) {
  if (random.one_in(2)) {
    if (last.kind == Fault::Kind::Hold && last.rank != kDriver) {
      return Fault::Kind::Kill;
    }
    if (last.kind == Fault::Kind::KillDriver || last.kind == Fault::Kind::EndMachine) {
      return Fault::Kind::FailDisk;
    }
  }
  return draw_kind(random);
}

void sort(std::vector<Fault>& faults) {
  std::ranges::stable_sort(
      faults, {}, [](const Fault& fault) { return std::pair(fault.step, fault.after); });
}

/// Draws an operation of the disk. Most of a save are writes; what matters more comes after them.
void draw_operation(Random& random, Fault& fault) {
  fault.counts_writes = random.one_in(3);
  fault.operation = 1 + static_cast<int>(random.below(fault.counts_writes ? 300 : 16));
}

}  // namespace

std::string_view name_of(Fault::Kind kind) {
  return std::ranges::find(kRows, kind, &Row::kind)->name;
}

std::vector<Fault> draw_faults(Random& random, int count, int ranks, std::int64_t steps) {
  // Measured, on each rank, in a run without faults.
  constexpr std::int64_t kEventsOfAStart = 100, kEventsOfAStep = 80;
  const auto below = [&](std::int64_t end) {
    return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(end)));
  };
  const auto any_rank = [&] { return Rank(static_cast<int>(below(ranks))); };
  std::vector<Fault> faults;
  for (int i = 0; i < count; ++i) {
    Fault fault;
    if (random.one_in(2)) {  // each step, however many things have happened until then
      fault.step = below(steps);
      fault.after = below(kEventsOfAStep * ranks);
    } else {
      fault.after = below((kEventsOfAStart + kEventsOfAStep * steps) * ranks);
    }
    const bool is_soon = !faults.empty() && random.one_in(4);  // after another: while it is mended
    fault.kind = is_soon ? draw_next_kind(random, faults.back()) : draw_kind(random);
    const bool is_while_held =
        is_soon && fault.kind == Fault::Kind::Kill && faults.back().kind == Fault::Kind::Hold;
    const bool is_same =
        is_soon && faults.back().rank != kDriver && (is_while_held || random.one_in(2));
    fault.rank = is_same ? faults.back().rank : any_rank();
    fault.other = any_rank();
    if (fault.other == fault.rank || random.one_in(3)) {
      fault.other = kDriver;
    }
    const Rank keeper = keeper_of(fault.rank, ranks);
    if (is_soon) {
      fault.step = faults.back().step;
      fault.after = faults.back().after + below(60);
    }
    switch (fault.kind) {
      case Fault::Kind::Kill:
        if (is_while_held ||
            random.one_in(3)) {  // while a copy, a timeline or the like is on its way
          fault.tensors = 1 + static_cast<int>(below(4));
          fault.other = is_while_held || random.one_in(2) ? keeper : fault.other;
        }
        break;
      case Fault::Kind::Stop:
      case Fault::Kind::StopDriver:
        fault.span = random.up_to(random.one_in(3) ? 30s : 1s);
        break;
      case Fault::Kind::Hold:
        fault.planes = random.one_in(2)   ? std::vector{Plane::Control, Plane::Data}
                       : random.one_in(2) ? std::vector{Plane::Data}
                                          : std::vector{Plane::Control};
        if (random.one_in(3)) {  // only copies go this way in some pipelines
          fault.other = keeper;
          fault.planes = {Plane::Data};
        }
        fault.span =
            random.up_to(!random.one_in(4)                          ? 200ms
                         : fault.planes == std::vector{Plane::Data} ? 60s  // nobody gives up
                                                                    : 5s);
        break;
      case Fault::Kind::BreakData:
        if (random.one_in(2)) {
          std::swap(fault.rank, fault.other);
        }
        break;
      case Fault::Kind::Part:
        fault.parted = {fault.rank, any_rank()};
        fault.blocks_out = !random.one_in(4);
        fault.blocks_in = !fault.blocks_out || !random.one_in(3);
        fault.span = random.one_in(4) ? 1h : random.up_to(random.one_in(2) ? 30s : 1s);
        break;
      case Fault::Kind::Slow:
        fault.span = random.up_to(3s);
        break;
      case Fault::Kind::Refuse:
        fault.refusal = random.one_in(3) ? Refusal{.grants = below(4), .least = kManyBytes}
                                         : Refusal{.grants = below(100)};
        break;
      case Fault::Kind::KillDriver:
      case Fault::Kind::EndMachine:
        if (random.one_in(2)) {
          draw_operation(random, fault);
        }
        break;
      case Fault::Kind::FailDisk: {
        using Failure = tests::DiskFault::Kind;
        constexpr Failure kFailures[] = {
            Failure::Fail, Failure::Fail, Failure::Short, Failure::Damage, Failure::Cut};
        fault.disk = kFailures[random.below(std::size(kFailures))];
        draw_operation(random, fault);
        break;
      }
      case Fault::Kind::FillDisk:
      case Fault::Kind::SlowDisk:
        fault.span = random.up_to(random.one_in(3) ? 10s : 200ms);
        draw_operation(random, fault);
        break;
      default:
        break;
    }
    faults.push_back(fault);
  }
  sort(faults);
  return faults;
}

void strike_clocks(Random& random, int ranks, std::vector<Fault>& faults) {
  for (Fault& fault : faults) {
    fault.with_clock = random.one_in(2);
  }
  const std::size_t count = faults.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (!random.one_in(3)) {
      continue;
    }
    Fault jump{.step = faults[i].step,
               .after = faults[i].after + static_cast<std::int64_t>(random.below(60)),
               .kind = Fault::Kind::Jump};
    jump.rank = random.one_in(2)
                    ? kDriver
                    : Rank(static_cast<int>(random.below(static_cast<std::uint64_t>(ranks))));
    jump.span = random.up_to(random.one_in(2) ? 1h : 1s);
    faults.push_back(jump);
  }
  sort(faults);
}

void kill_drivers(Random& random, std::vector<Fault>& faults) {
  const std::size_t count = faults.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (random.one_in(4)) {
      faults.push_back({.step = faults[i].step,
                        .after = faults[i].after + static_cast<std::int64_t>(random.below(150)),
                        .kind = Fault::Kind::KillDriver});
    }
  }
  sort(faults);
}

bool strike(const Fault& fault, Processes& processes, DriverDisk& disk) {
  switch (fault.kind) {
    case Fault::Kind::Kill:
      return processes.kill(fault.rank);
    case Fault::Kind::Stop:
      return processes.stop(fault.rank, fault.span, fault.with_clock);
    case Fault::Kind::Hold:
      return processes.hold(fault.other, fault.rank, fault.planes, fault.span);
    case Fault::Kind::BreakControl:
      return processes.break_control(fault.rank);
    case Fault::Kind::BreakData:
      return processes.break_data(fault.rank, fault.other);
    case Fault::Kind::Part:
      return processes.part(fault.parted, fault.blocks_out, fault.blocks_in, fault.span);
    case Fault::Kind::StopDriver:
      return processes.stop(kDriver, fault.span, fault.with_clock);
    case Fault::Kind::Jump:
      return processes.set_clock_ahead(fault.rank, fault.span);
    case Fault::Kind::Refuse:
      return processes.refuse_memory(fault.rank, fault.refusal);
    case Fault::Kind::Slow:
      return processes.slow(fault.rank, fault.span);
    case Fault::Kind::Stranger:
      return processes.come_as_stranger();
    case Fault::Kind::FillDisk:
      disk.fill(fault.span);
      return true;
    case Fault::Kind::FailDisk:
      disk.fail(fault.disk);
      return true;
    case Fault::Kind::SlowDisk:
      disk.slow(fault.span);
      return true;
    case Fault::Kind::EndMachine:
      if (!processes.end_driver()) {
        return false;
      }
      disk.end_machine();
      return true;
    case Fault::Kind::KillDriver:
      break;
  }
  return processes.end_driver();
}

}  // namespace stagecraft::simulation
