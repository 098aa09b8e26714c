#include "stagecraft/tests/simulate/run.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <type_traits>
#include <utility>

#include <ATen/ops/add.h>
#include <ATen/ops/equal.h>
#include <fmt/format.h>

#include "stagecraft/actors/driver/driver.h"
#include "stagecraft/actors/trainer/state/checkpoint.h"
#include "stagecraft/stagecraft.h"
#include "stagecraft/tests/faults/course.h"
#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/simulate/cluster.h"
#include "stagecraft/tests/simulate/refusing_allocator.h"
#include "stagecraft/tests/simulate/saves.h"
#include "stagecraft/tests/simulate/shape.h"
#include "stagecraft/tests/simulate/unbroken.h"
#include "stagecraft/tests/support/command.h"

namespace stagecraft::simulation {
namespace {

using namespace std::chrono_literals;

/// Longest time for a call once nothing disturbs it any more: to learn a cause, to ask who waits,
/// and some slow messages.
constexpr auto kPrompt = kCauseLimit + kLossAskLimit + 500ms;

/// Draws of the faults, of the shape and of the order of events must not depend on each other.
constexpr std::uint64_t kOfFaults = 0x9e3779b97f4a7c15, kOfShape = 0xd1b54a32d192ed03,
                        kOfClocks = 0x8cb92ba72f3d8dd7, kOfOutliving = 0xa24baed4963ee407;

Shape shape_of(std::uint64_t seed, const RunOptions& options) {
  Random random(seed ^ kOfShape);
  return draw_shape(random, options.ranks, options.way, options.outlive);
}

const std::string kWeight = "weight:";

/// A fault may fail several calls one after the other, also after it has ended.
constexpr int kMostFailures = 4;

class Run {
 public:
  /// `folder`: of the driver's disk.
  Run(std::uint64_t seed, const RunOptions& options, const std::string& folder)
      : options_(options),
        shape_(shape_of(seed, options)),
        unbroken_(Unbroken::of(shape_)),
        world_(seed),
        network_(std::make_shared<Network>(world_)),
        processes_(std::make_shared<Processes>(*network_, options.ranks, shape_.outlives)),
        disk_(std::make_shared<DriverDisk>(world_, folder)),
        checkpoints_(folder + "/runs/first") {
    unbroken_.advance(options.steps + 2, shape_.evaluates);
    world_.tell("driver", fmt::format("{}, and keep {} checkpoints", shape_.text(), keep_));
  }

  RunResult result(const std::vector<Fault>& faults) {
    to_come_ = {faults.begin(), faults.end()};
    await_faults(-1);
    RunResult result;
    const RefusingAllocator memory(
        [this](std::size_t bytes) { return processes_->is_refused_memory(bytes); });
    try {
      world_.run([this] {
        const Ending ending{*processes_};
        train();
      });
    } catch (const Standstill& standstill) {
      result.violation = standstill.what();
      result.is_stuck = true;
    } catch (const std::exception& violation) {
      result.violation = violation.what();
    }
    result.story = world_.story().text();
    result.faults = struck_;
    result.recoveries = recoveries_;
    result.events = world_.count();
    return result;
  }

 private:
  /// Lets those faults strike whose step the run has made, each once.
  void await_faults(std::int64_t step) {
    for (; !to_come_.empty() && to_come_.front().step <= step; to_come_.pop_front()) {
      const Fault fault = to_come_.front();
      const World::Event strikes = striking(fault);
      world_.at_count(world_.count() + fault.after, [this, fault, strikes] {
        if (fault.operation > 0) {
          disk_->before_operation(fault.operation, fault.counts_writes, strikes);
        } else if (fault.tensors > 0) {
          processes_->after_tensors(fault.rank, fault.other, fault.tensors, strikes);
        } else {
          strikes();
        }
      });
    }
  }

  /// Returns an event that lets a fault strike, and counts it if it does.
  [[nodiscard]] World::Event striking(const Fault& fault) {
    return [this, fault] {
      if (!is_done_ && strike(fault, *processes_, *disk_)) {
        ++struck_[static_cast<std::size_t>(fault.kind)];
      }
    };
  }

  /// Ends the fleet with the run, as its driver does.
  struct Ending {
    Processes& processes;
    ~Ending() { processes.end_fleet(); }
  };

  /// Trains to the end of the run, by one driver after the other.
  void train() {
    while (!is_done_) {
      try {
        drive();
      } catch (const ProcessEnded&) {
        gone_.merge(lost_);
        for (int r = 0; is_taking_over_ && r < options_.ranks; ++r) {
          if (!processes_->has_outlived(Rank(r))) {
            gone_.insert(r);
          }
        }
        processes_->begin_driver();
        lost_.clear();
        is_taking_over_ = shape_.outlives;
      }
    }
  }

  void drive() {
    const DiskOfThread scope(disk_);
    const Cluster cluster(options_.ranks, processes_);
    std::optional<Saves> saves;
    std::optional<tests::Trainer> trainer;
    while (!is_done_) {
      try {
        if (!saves) {
          saves.emplace(world_, *disk_, unbroken_, saved_, checkpoints_, keep_);
        }
        begin(cluster, *saves, trainer);
        get_on(cluster, *saves, trainer);
      } catch (const Error& error) {
        require_driver();
        count(error);
        blame(error);
        replace(cluster);
        needs_state_ = needs_state_ || needs_state_after(error);
      }
    }
  }

  /// Some runs rely on it that an error without advice leaves the weights as they were (DR-4).
  bool needs_state_after(const Error& error) {
    return error.code() == Errc::WorkerLost || !error.advice().empty() || !lost_.empty() ||
           is_loading_ || world_.random().one_in(2);
  }

  Rank any_rank() {
    return Rank(
        static_cast<int>(world_.random().below(static_cast<std::uint64_t>(options_.ranks))));
  }

  /// Kills a rank soon, or when it has sent its next copy: one whose copies are late, if there is.
  void kill_soon() {
    Rank rank = any_rank();
    for (const auto& [late, until] : processes_->late_copies()) {
      rank = until > world_.clock().now() ? late : rank;
    }
    const World::Event kill = striking({.kind = Fault::Kind::Kill, .rank = rank});
    if (world_.random().one_in(2)) {
      processes_->after_tensors(rank, keeper_of(rank, options_.ranks), 1, kill);
    } else {
      world_.at_count(world_.count() + static_cast<std::int64_t>(world_.random().below(150)), kill);
    }
  }

  /// Counts failures in a row that no fault explains.
  void count(const Error& error) {
    world_.tell("driver", fmt::format("failed: {}", disk_->shown(error.what())));
    failures_ = is_disturbed_since(failed_) ? 0 : failures_ + 1;
    failed_ = world_.clock().now();
    require(failures_ <= kMostFailures, "the run does not get on");
  }

  /// Replaces ranks that are lost; now and then one that may only be late.
  void replace(const Cluster& cluster) {
    const Rank late = world_.random().one_in(4) ? any_rank() : kDriver;  // the driver: none
    for (int r = 0; r < options_.ranks; ++r) {
      if (processes_->is_known_lost(Rank(r)) || Rank(r) == late) {
        lost_.insert(r);
        try {
          cluster.replace(Rank(r));
        } catch (const Error& error) {  // the next one follows the failure of what needs it
          require_driver();
          world_.tell("driver", fmt::format("does not replace rank {}: {}", r, error.what()));
        }
      }
    }
  }

  /// Lets a driver that was killed while nothing may be thrown do nothing more.
  void require_driver() const {
    if (!world_.has_driver()) {
      throw ProcessEnded();
    }
  }

  /// Ends the trainer.
  void end(std::optional<tests::Trainer>& trainer) {
    handed_on_.reset();
    {
      const InDestructor scope;
      trainer.reset();
    }
    require_driver();
  }

  /// Calls the trainer, for so many batches. Keeps SI-4 and SI-6.
  template <class Call>
  auto prompt(std::string_view what, int batches, const Call& call) {
    const World::Time begun = world_.clock().now();
    const bool was_whole = !processes_->has_lost();
    const bool needs_disk = what == "save()" || what == "load()";  // no other call may (CS-1)
    const auto disk_disturbed = [&] { return needs_disk ? disk_->disturbed_until() : begun; };
    const auto check_time = [&](const std::string& outcome) {
      const World::Time since = std::max({begun, last_disturbed(), disk_disturbed()});
      require(world_.clock().now() - since <= kPrompt,
              fmt::format("{} {} only {:.3f} s after the last fault",
                          what,
                          outcome,
                          std::chrono::duration<double>(world_.clock().now() - since).count()));
      const World::Time going = std::max(begun, network_->driver_continued());
      require(what != "step()" || world_.clock().now() - going <= batches * longest_batch(),
              fmt::format("{} {} long after its deadline", what, outcome));
    };
    try {
      if constexpr (std::is_void_v<decltype(call())>) {
        call();
        check_time("is done");
      } else {
        auto result = call();
        check_time("is done");
        return result;
      }
    } catch (const Error& error) {
      require_driver();
      const std::string_view why = error.what();
      check_time(fmt::format("fails ({})", why));
      require(!was_whole || has_no_state(error) || is_disturbed_since(begun) ||
                  disk_disturbed() > begun,
              fmt::format("{} fails without a fault: {}", what, why));
      const std::optional<Rank> silent = silent_after_abort(why);
      require(!silent || processes_->messages_late_until(*silent) > begun,
              fmt::format("an abort is not answered, though no message is late: {}", why));
      throw;
    }
  }

  /// Returns the rank that has not answered an abort, if the error or its cause is that.
  static std::optional<Rank> silent_after_abort(std::string_view error) {
    const std::size_t end = error.find(" was told to abort and has not answered");
    if (end == std::string_view::npos) {
      return std::nullopt;
    }
    const std::size_t number = error.rfind(' ', end - 1) + 1;
    return Rank(std::stoi(std::string(error.substr(number, end - number))));
  }

  /// Makes a trainer, or brings its state back after a failure: from mirrors or copies, from the
  /// newest checkpoint if they have no whole state, else by another trainer.
  void begin(const Cluster& cluster, Saves& saves, std::optional<tests::Trainer>& trainer) {
    if (!trainer) {
      trainer.emplace(cluster, unbroken_.execution, tests::course_optimizer(), trainer_options());
      needs_state_ = has_stepped_ = is_loading_ = false;
      lost_.clear();
      world_.tell("driver", "has a trainer");
      if (!is_taking_over_) {
        (void)load(saves, *trainer);
      }
    }
    if (is_taking_over_) {
      const bool is_left = take_over(saves, *trainer);
      is_taking_over_ = false;
      if (is_left || load(saves, *trainer)) {
        needs_state_ = false;
      } else if (needs_state_) {
        end(trainer);
        return begin(cluster, saves, trainer);
      }
    }
    if (needs_state_) {
      // Rather than usually while copies of what is recovered are on their way, which is rare.
      if (world_.random().one_in(has_copies_late_after(world_.clock().now()) ? 2 : 4)) {
        kill_soon();
      }
      if ((!recover(*trainer) || has_weights_of_other(*trainer)) && !load(saves, *trainer)) {
        end(trainer);
        return begin(cluster, saves, trainer);
      }
      other_.reset();
      unbroken_.check_state(*trainer);
      needs_state_ = false;
    }
  }

  /// Goes on with the state of workers that have outlived the driver before (MR-4). Returns false
  /// if they have no whole one, or if the newest checkpoint is newer.
  bool take_over(const Saves& saves, tests::Trainer& trainer) {
    bool is_left = false;
    std::string why;
    try {
      prompt("recover()", 1, [&] { return trainer.recover(); });
      is_left = trainer.recovered_from_mirrors();
    } catch (const Error& error) {
      if (!has_no_state(error)) {
        throw;
      }
      why = error.what();
    }
    world_.tell("driver",
                is_left ? fmt::format("takes over step {}", trainer.steps())
                        : fmt::format("takes over nothing: {}", why));
    const int back = has_copies_late_after(two_calls_ago_) ? 2 : 1;
    require(!is_handed_on() || (is_left && trainer.steps() + back >= *handed_on_),
            "the state of workers that outlived their driver is lost");
    handed_on_ = is_left && is_handed_on() ? std::optional(trainer.steps()) : std::nullopt;
    if (!is_left) {
      return false;
    }
    ++recoveries_;
    if (has_weights_of_other(trainer)) {  // its driver was killed while it had them
      needs_state_ = true;
      return false;
    }
    unbroken_.check_state(trainer);
    return trainer.steps() >= saves.newest().value_or(0);
  }

  /// Says whether workers that have outlived the driver before have to have a whole state.
  [[nodiscard]] bool is_handed_on() const {
    const auto is_gone = [this](Rank rank) {
      return gone_.contains(rank.value) || !processes_->has_outlived(rank);
    };
    bool is_whole = handed_on_.has_value();
    for (int r = 0; r < options_.ranks; ++r) {
      is_whole = is_whole && !(is_gone(Rank(r)) && is_gone(keeper_of(Rank(r), options_.ranks)));
    }
    return is_whole;
  }

  /// Brings the state back from mirrors. Returns false if they have no whole one.
  bool recover(tests::Trainer& trainer) {
    const std::int64_t before = trainer.steps();
    try {
      const std::int64_t after = prompt("recover()", 1, [&] { return trainer.recover(); });
      world_.tell("driver", fmt::format("recovered step {}", after));
      const int back = has_copies_late_after(two_calls_ago_) ? 2 : 1;
      require((after + back >= before && after <= before + 1) || is_loading_,
              "recover() went elsewhere");
      if (handed_on_) {
        handed_on_ = after;
      }
      ++recoveries_;
      return true;
    } catch (const Error& error) {
      if (!has_no_state(error)) {
        throw;
      }
      world_.tell("driver", fmt::format("has no whole state: {}", error.what()));
      require(!mirrors_are_whole(),
              "no whole state is in the mirrors, though no rank was lost with its keeper");
      require(!copies_are_whole(error),
              "copies have no whole state, though of each stage one is left");
      return false;
    }
  }

  /// Loads the newest checkpoint. Returns its path, or nothing if there is none.
  std::optional<std::string> load(Saves& saves, tests::Trainer& trainer) {
    if (!saves.has_any()) {
      return std::nullopt;
    }
    has_stepped_ = false;  // a load drops the copies of before
    handed_on_.reset();
    is_loading_ = true;
    auto path = prompt("load()", 1, [&] { return saves.resume(trainer); });
    is_loading_ = false;
    if (path) {
      unbroken_.check_state(trainer);
    }
    return path;
  }

  /// Loads weights of another run, and then those of this one. A recovery meanwhile must not mix
  /// them, though both have made as many updates (LV-1).
  void load_other(tests::Trainer& trainer) {
    const Checkpoint own = prompt("checkpoint()", 1, [&] { return trainer.checkpoint(); });
    unbroken_.check_checkpoint(own);
    other_ = own;
    for (StateTensor& state : other_->tensors) {
      if (state.name.starts_with(kWeight) && state.tensor.is_floating_point()) {
        state.tensor = at::add(state.tensor, 1);
      }
    }
    has_stepped_ = false;
    handed_on_.reset();
    is_loading_ = true;
    if (world_.random().one_in(2)) {
      kill_soon();
    }
    prompt("load()", 1, [&] { trainer.load(*other_); });
    world_.tell("driver", "loaded weights of another run");
    require(has_weights_of_other(trainer), "other weights than those that were loaded");
    prompt("load()", 1, [&] { trainer.load(own); });
    is_loading_ = false;
    other_.reset();
    unbroken_.check_state(trainer);
  }

  /// All weights of the other run differ from those of this one. A load() that has failed leaves
  /// those of one of them, also where no stage uses them.
  [[nodiscard]] bool has_weights_of_other(tests::Trainer& trainer) const {
    if (!other_) {
      return false;
    }
    std::array<bool, 2> found{};  // of this run, of the other
    for (const auto& [name, weight] : trainer.state_dict()) {
      const auto other = std::ranges::find(other_->tensors, kWeight + name, &StateTensor::name);
      if (other != other_->tensors.end() && weight.is_floating_point()) {
        found.at(at::equal(other->tensor, weight) ? 1 : 0) = true;
      }
    }
    require(!found[0] || !found[1], "a recovery mixes weights of two runs");
    return found[1];
  }

  [[nodiscard]] TrainerOptions trainer_options() const {
    const tests::CourseOptions bits = shape_.course_options();
    return {
        .clip = bits.clip,
        .loss_scaling = bits.loss_scaling,
        .seed = tests::kCourseSeed,
        .record_timeline = records_,
        .mirror = shape_.mirror,
        .run = shape_.outlives ? "first" : "",
        .step_deadline = patience_,
    };
  }

  /// Ends the trainer. One that trains in another way loads the checkpoint and makes one, from
  /// which this run goes on.
  void move(const Cluster& cluster, Saves& saves, std::optional<tests::Trainer>& trainer) {
    end(trainer);
    const auto& [way, execution] = unbroken_.others[world_.random().below(unbroken_.others.size())];
    std::optional<tests::Trainer> reader;
    reader.emplace(cluster, *execution, tests::course_optimizer(), trainer_options());
    world_.tell("driver", fmt::format("trains by {}", way));
    if (const auto path = load(saves, *reader)) {
      const Checkpoint again = prompt("checkpoint()", 1, [&] { return reader->checkpoint(); });
      const Checkpoint loaded = [&] {
        const DiskOfThread real(Disk::system());  // because this check is no part of the run
        return read_checkpoint(*path);
      }();
      require(again.step == loaded.step && by_name(again) == by_name(loaded),
              "a checkpoint is another one after it was loaded in another way");
      prompt("save()", 1, [&] { saves.begin(*reader); });
    }
    end(reader);
  }

  /// Compares by bits.
  struct Content {
    std::map<std::string, at::Tensor> tensors;
    bool operator==(const Content& other) const {
      return std::ranges::equal(tensors, other.tensors, [](const auto& a, const auto& b) {
        return a.first == b.first && at::equal(a.second, b.second);
      });
    }
  };
  static Content by_name(const Checkpoint& checkpoint) {
    Content content;
    for (const StateTensor& state : checkpoint.tensors) {
      content.tensors.emplace(state.name, state.tensor);
    }
    return content;
  }

  /// Says whether a rank and the keeper of its copies, the next one, were lost since the last step.
  [[nodiscard]] bool lost_with_keeper() const {
    return std::ranges::any_of(lost_, [this](int rank) {
      return lost_.contains(keeper_of(Rank(rank), options_.ranks).value);
    });
  }

  [[nodiscard]] bool mirrors_are_whole() const {
    return shape_.mirror && has_stepped_ && !lost_with_keeper();
  }

  /// Says whether copies of stages have to give a state, though recover() has found none.
  [[nodiscard]] bool copies_are_whole(const Error& error) const {
    if (!shape_.has_whole_copies() || is_loading_) {
      return false;
    }
    const int pipeline = shape_.ranks / shape_.copies();
    for (int r = 0; r < pipeline; ++r) {
      bool is_left = false;
      for (int copy = r; copy < shape_.ranks; copy += pipeline) {
        is_left = is_left || !lost_.contains(copy);
      }
      if (!is_left) {
        return false;
      }
    }
    // Others have made the update, or have not, and no rank of this stage is one of them.
    const std::string_view text = error.what();
    std::set<std::string_view> updates;
    constexpr std::string_view kBefore = "those after ";
    for (std::size_t at = text.find(kBefore); at != text.npos; at = text.find(kBefore, at + 1)) {
      const std::string_view rest = text.substr(at + kBefore.size());
      updates.insert(rest.substr(0, rest.find(' ')));
    }
    return updates.size() == 1;
  }

  /// Says whether recover() has found out that neither mirrors nor copies suffice.
  static bool has_no_state(const Error& error) {
    return error.code() == Errc::WorkerLost &&
           std::string_view(error.what()).starts_with("there is no state of which ");
  }

  /// Makes steps to the end of the run, with a checkpoint now and then.
  void get_on(const Cluster& cluster, Saves& saves, std::optional<tests::Trainer>& trainer) {
    while (trainer->steps() < options_.steps) {
      await_faults(trainer->steps());
      if ((!saves.has_any() && !saves.is_saving()) || world_.random().one_in(between_saves_)) {
        save(saves, *trainer);
        if (!unbroken_.others.empty() && world_.random().one_in(12)) {
          move(cluster, saves, trainer);
          begin(cluster, saves, trainer);
        } else if (world_.random().one_in(12)) {
          load_other(*trainer);
        }
      }
      if (shape_.evaluates) {
        evaluate(*trainer);
      }
      if (world_.random().one_in(20)) {
        leave(trainer);
        begin(cluster, saves, trainer);
      } else {
        steps(*trainer);
      }
      saves.look();
    }
    prompt("save()", 1, [&] { saves.settle(); });
    unbroken_.check_state(*trainer);
    is_done_ = true;
    wait_on_strand([this] { return !is_disturbed(); });
    pause_strand(std::max(last_disturbed() - world_.clock().now(), World::Time::duration(0)) + 1s);
    require(processes_->bytes_waiting() == 0, "tensors are left that nobody receives");
    require(!processes_->has_let_in_stranger(), "a stranger was given a place");
  }

  /// Saves while steps go on, or waits for the file.
  void save(Saves& saves, tests::Trainer& trainer) {
    prompt("save()", 1, [&] {
      saves.begin(trainer);
      if (world_.random().one_in(3)) {
        saves.settle();
      }
    });
  }

  void evaluate(tests::Trainer& trainer) {
    const tests::Data batch = tests::data(trainer.steps());
    const double loss =
        prompt("evaluate()", 1, [&] { return trainer.evaluate(batch.inputs, batch.labels); });
    unbroken_.check_evaluation(trainer.steps(), loss);
    world_.tell("driver", "has evaluated");
  }

  /// Makes a step, or several that are submitted at once. Those train on one batch, so that a step
  /// after one that failed makes the same update in its place.
  void steps(tests::Trainer& trainer) {
    const std::int64_t before = trainer.steps();
    const auto most = std::min<std::uint64_t>(static_cast<std::uint64_t>(options_.steps - before),
                                              shape_.bursts ? 3 : 1);
    const auto count = static_cast<int>(1 + world_.random().below(most));
    const World::Time begun = world_.clock().now();
    two_calls_ago_ = std::exchange(last_call_, begun);
    prompt("step()", count * shape_.batches, [&] {
      std::vector<StepFuture> made;
      for (int i = 0; i < count; ++i) {
        made.push_back(submit(trainer, before + i));
      }
      std::optional<Error> failure;
      std::int64_t number = before;
      for (int i = 0; i < count; ++i) {
        try {
          const StepResult result = made[static_cast<std::size_t>(i)].get();
          require(!failure || failure->code() != Errc::WorkerLost,
                  "a step runs though weights are undefined");
          require(result.step > number && result.step <= before + 1 + i,
                  "a step has another number");
          number = result.step;
          unbroken_.check(result);
          has_stepped_ = true;
          handed_on_ = number;
          other_.reset();
          lost_.clear();
          gone_.clear();
        } catch (const Error& error) {  // the first, but a later one may leave weights undefined
          if (!failure || (failure->advice().empty() && !error.advice().empty())) {
            failure = error;
          }
        }
      }
      if (failure) {
        throw Error(*failure);
      }
    });
    world_.tell(
        "driver",
        fmt::format(
            "step {} done after {:.3f} ms",
            before + count,
            std::chrono::duration<double, std::milli>(world_.clock().now() - begun).count()));
  }

  /// Ends the trainer while steps are under way. Each of them has been made then, or fails.
  void leave(std::optional<tests::Trainer>& trainer) {
    const World::Time begun = world_.clock().now();
    const std::int64_t before = trainer->steps();
    std::vector<StepFuture> made;
    const std::uint64_t count = 1 + world_.random().below(shape_.bursts ? 3 : 1);
    for (std::uint64_t i = 0; i < count; ++i) {
      made.push_back(submit(*trainer, before + static_cast<std::int64_t>(i)));
    }
    pause_strand(world_.random().up_to(20ms));
    end(trainer);
    world_.tell("driver", fmt::format("ends its trainer in step {}", before + 1));
    for (const StepFuture& step : made) {
      require(step.ready(), "a step is under way, and its trainer has ended");
      try {
        unbroken_.check(step.get());
      } catch (const Error& why) {
        require(
            why.code() == Errc::Cancelled || processes_->has_lost() || is_disturbed_since(begun),
            why.what());
      }
    }
  }

  /// Returns the longest time for a batch, whatever happens: its deadline, questions to the agents,
  /// the deadlines of its abort and of that of an earlier step, and causes.
  [[nodiscard]] World::Time::duration longest_batch() const {
    return patience_ + kAskLimit + 2 * std::max(patience_, kLeastAbortLimit) + kPrompt;
  }

  [[nodiscard]] bool has_copies_late_after(World::Time when) const {
    return std::ranges::any_of(processes_->late_copies(),
                               [when](const auto& late) { return late.second > when; });
  }
  [[nodiscard]] bool is_disturbed() const {
    return network_->is_disturbed(Plane::Control) || network_->is_disturbed(Plane::Data);
  }
  [[nodiscard]] bool is_disturbed_since(World::Time when) const {
    return is_disturbed() || last_disturbed() > when;
  }
  [[nodiscard]] World::Time last_disturbed() const {
    return std::max(network_->disturbed_until(Plane::Control),
                    network_->disturbed_until(Plane::Data));
  }

  /// Submits the batches of the update after this many.
  StepFuture submit(tests::Trainer& trainer, std::int64_t updates) {
    const std::int64_t last = (updates + 1) * shape_.batches - 1;
    for (std::int64_t i = updates * shape_.batches; i < last; ++i) {
      const tests::Data batch = tests::data(shape_.bursts ? 0 : i);
      trainer.accumulate(batch.inputs, batch.labels);
    }
    const tests::Data batch = tests::data(shape_.bursts ? 0 : last);
    return trainer.step(batch.inputs, batch.labels);
  }

  /// A worker that is said to be lost is, and for the cause that is told. Ranks of a sound plan do
  /// not wait in a circle.
  void blame(const Error& error) {
    require(std::string_view(error.what()).find("waits for itself") == std::string_view::npos,
            "a circle of waits is told, and the plan has none");
    if (!error.context().rank) {
      return;
    }
    const Rank rank = *error.context().rank;
    // The deadline may pass at the instant of the loss, if the driver's clock has just jumped.
    require(
        !processes_->is_known_lost(rank) ||
            world_.clock().now() - network_->driver_continued() < kPrompt ||
            std::string_view(error.what()).find("has announced a tensor") == std::string_view::npos,
        fmt::format("rank {} is lost, and said to be late", rank.value));
    if (error.code() != Errc::WorkerLost) {
      return;
    }
    const std::string_view text = error.what();
    if (text.find(fmt::format("rank {} is lost: ", rank.value)) != std::string_view::npos) {
      require(processes_->is_lost(rank),
              fmt::format("rank {} is said to be lost, and lives", rank.value));
      const std::string& cause = processes_->cause(rank);
      require((!cause.empty() && text.find(cause) != std::string_view::npos) ||
                  (text.find("its worker has ended") != std::string_view::npos &&
                   !processes_->is_told_in_time(rank)),
              fmt::format("another cause is told than \"{}\"", cause));
    }
  }

  const RunOptions options_;
  const Shape shape_;
  Unbroken& unbroken_;
  World world_;
  const std::shared_ptr<Network> network_;
  const std::shared_ptr<Processes> processes_;
  std::optional<Checkpoint> other_;  ///< of another run, while it is loaded
  const std::shared_ptr<DriverDisk> disk_;
  const std::string checkpoints_;  ///< their folder
  SavedSteps saved_;
  std::deque<Fault> to_come_;  ///< by their steps
  FaultCounts struck_{};
  int recoveries_ = 0;
  /// So short in some runs that faults make steps late.
  const std::chrono::milliseconds patience_ = world_.random().one_in(2) ? 500ms : 20000ms;
  const int keep_ = 1 + static_cast<int>(world_.random().below(3));
  const std::uint64_t between_saves_ = 1 + world_.random().below(6);
  const bool records_ = world_.random().one_in(2);
  std::set<int> lost_;                         ///< ranks that were lost since the last step
  World::Time last_call_{}, two_calls_ago_{};  ///< of step()
  World::Time failed_{};  ///< when the driver's program has failed the last time
  int failures_ = 0;      ///< since then without a fault
  /// The last step that workers have made, or gone back to, if they hand on its state or that
  /// before.
  std::optional<std::int64_t> handed_on_;
  std::set<int> gone_;  ///< ranks that drivers before have lost since that step
  bool is_taking_over_ = false;
  bool has_stepped_ = false;  ///< so mirrors have copies
  bool is_loading_ = false;   ///< a load has begun, and has not succeeded
  bool needs_state_ = false, is_done_ = false;
};

}  // namespace

std::vector<Fault> faults_of(std::uint64_t seed, const RunOptions& options) {
  constexpr std::uint64_t kFewFaults = 16, kManyFaults = 64;
  Random random(seed ^ kOfFaults);
  const std::uint64_t most = random.one_in(2) ? kFewFaults : kManyFaults;
  const int count = options.faults.value_or(static_cast<int>(1 + random.below(most)));
  std::vector<Fault> faults = draw_faults(random, count, options.ranks, options.steps);
  Random clocks(seed ^ kOfClocks);
  if (clocks.one_in(4)) {
    strike_clocks(clocks, options.ranks, faults);
  }
  if (shape_of(seed, options).outlives) {
    Random outliving(seed ^ kOfOutliving);
    kill_drivers(outliving, faults);
  }
  return faults;
}

RunResult run(std::uint64_t seed, const RunOptions& options, const std::vector<Fault>& faults) {
  const tests::TemporaryFolder disk;
  auto run = std::make_unique<Run>(seed, options, disk.path());
  RunResult result = run->result(faults);
  if (result.is_stuck) {
    (void)run.release();  // its threads use it
  }
  return result;
}

RunResult shortened(std::uint64_t seed, const RunOptions& options, RunResult broken) {
  std::vector<Fault> faults = faults_of(seed, options);
  for (std::size_t i = faults.size(); i-- > 0 && !broken.is_stuck;) {
    std::vector<Fault> fewer = faults;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    RunResult result = run(seed, options, fewer);
    if (!result.violation.empty()) {
      faults = std::move(fewer);
      broken = std::move(result);
    }
  }
  return broken;
}

}  // namespace stagecraft::simulation
