/// verify(RankList) checks the rules of plan.h that one list shows: P-1, P-2, P-4, P-6 to P-9,
/// P-11 to P-13.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "stagecraft/compiler/plan/exchange_check.h"
#include "stagecraft/compiler/plan/issue_order.h"
#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/compiler/plan/sum_check.h"

namespace stagecraft {
namespace {

/// Form says how many slots an instruction of this kind reads and writes; -1: as many as its task
/// has values.
struct Form {
  int reads = 0;
  int writes = 0;
  bool of_a_stage = false;
};

Form form_of(const Instruction& i) {
  if (is_exchange(i)) {
    return {.reads = 1, .of_a_stage = true};
  }
  switch (i.op) {
    case Op::Run:
      return {.reads = -1, .writes = -1, .of_a_stage = true};
    case Op::Send:
      return {.reads = 1, .of_a_stage = true};
    case Op::Recv:
      return {.writes = 1, .of_a_stage = true};
    case Op::Accumulate:
      return {.reads = 1, .of_a_stage = true};
    case Op::Free:
      return {.reads = 1};
    case Op::Update:
      return {.of_a_stage = true};
    case Op::Regroup:
      return {.reads = -1, .writes = 1, .of_a_stage = true};
    case Op::Start:
    case Op::Finish:
    case Op::Vote:
    case Op::Release:
      break;
  }
  return {};
}

class ListCheck {
 public:
  ListCheck(const RankList& list, const PlanTables& tables, const std::string& name)
      : list_(list), tables_(tables), name_(name) {}

  std::vector<std::string> run() {
    check_forms();
    if (faults_.empty()) {  // the checks below rely on it
      check_ids();
    }
    if (faults_.empty()) {
      check_streams();
      follow();
    }
    return std::move(faults_);
  }

 private:
  using Instructions = std::vector<Instruction>;

  struct Slot {
    std::optional<ValueKey> value;
    std::vector<InstructionId> users;  ///< since it was filled, the writer first
    std::optional<InstructionId> freed;
  };

  void fault(std::string_view rule, const Instruction& i, std::string_view what) {
    faults_.push_back(fmt::format("{}: {}, {}: {}", rule, name_, to_string(i), what));
  }

  [[nodiscard]] static bool has(std::int32_t number, std::size_t count) {
    return number >= 0 && static_cast<std::size_t>(number) < count;
  }

  /// Returns whether all enumerators have names. Only then may the instruction be printed.
  [[nodiscard]] static bool is_in_words(const Instruction& i) {
    const auto uses_in_words = [](const std::vector<SlotUse>& uses) {
      return std::ranges::all_of(
          uses, [](const SlotUse& use) { return use.value.role <= Role::GradientPart; });
    };
    return i.op <= Op::Release && i.collective <= CollectiveKind::AllToAll &&
           i.task.kind <= CellKind::Update && uses_in_words(i.reads) && uses_in_words(i.writes);
  }

  [[nodiscard]] static bool has_sound_rows(const Instruction& i) {
    return i.rows.size() == (i.op == Op::Regroup ? i.reads.size() : 0) &&
           (i.op != Op::Regroup || !i.rows.empty()) &&
           std::ranges::all_of(i.rows, [](const RowRange& r) {
             return r.first >= 0 && r.count >= 1 && r.of >= r.count && r.first <= r.of - r.count;
           });
  }

  /// Returns whether the group of a collective divides weights if, and only if, it is an exchange
  /// for the group's chunk. In an evaluation all are gathers of weights for tasks.
  [[nodiscard]] bool has_its_group(const Instruction& i) const {
    const PlanGroup& group = tables_.groups[static_cast<std::size_t>(i.group)];
    if (!tables_.training) {
      return gathers_for_tasks(tables_, group) && i.collective == CollectiveKind::AllGather;
    }
    const bool divided = group.kind == PlanGroup::Kind::Divided;
    if (!divided || !is_exchange(i)) {
      return divided == is_exchange(i);
    }
    const ValueKey& read = i.reads.front().value;
    return i.chunks == tables_.buckets[static_cast<std::size_t>(group.bucket)].chunks &&
           std::ranges::find(group.stages, i.task.stage) != group.stages.end() &&
           read.role == Role::Saved && read.stage == i.task.stage &&
           read.microbatch == i.task.microbatch;
  }

  /// Returns the fault of the instruction by itself (P-9); empty if there is none.
  [[nodiscard]] std::string misshape(const Instruction& i) const {
    const Form form = form_of(i);
    const auto wrong = [](std::size_t count, int wanted) {
      return wanted >= 0 && count != static_cast<std::size_t>(wanted);
    };
    if (wrong(i.reads.size(), form.reads) || wrong(i.writes.size(), form.writes)) {
      return fmt::format("it reads {} and writes {} slots", i.reads.size(), i.writes.size());
    }
    if (!has_sound_rows(i)) {
      return "its rows are not those of what it reads";
    }
    for (const auto* uses : {&i.reads, &i.writes}) {
      for (const SlotUse& use : *uses) {
        if (!has(use.slot.value, static_cast<std::size_t>(list_.slots))) {
          return fmt::format("the list has no slot {}, but {} slots", use.slot.value, list_.slots);
        }
        if (!has(use.value.stage.value, tables_.stages.size()) || use.value.microbatch.value < 0 ||
            use.value.chunk < 0) {
          return "it uses a value of a stage or microbatch that there is not";
        }
      }
    }
    if (form.of_a_stage && !std::ranges::binary_search(list_.stages, i.task.stage)) {
      return fmt::format("stage {} is not in this list", i.task.stage.value);
    }
    if (i.op == Op::Run && (i.task.kind == CellKind::Idle || i.task.kind == CellKind::Update)) {
      return "a Run is a forward or a backward";
    }
    if (i.task.microbatch.value < 0 || i.chunks.first < 0 || i.chunks.count < 1 ||
        i.chunks.first > i.chunks.end() || i.round < 0 ||
        static_cast<std::size_t>(i.round) > list_.instructions.size()) {
      return "a number in it is below 0, or it has no chunk";
    }
    if (is_transfer(i.op) && !has(i.peer.value, static_cast<std::size_t>(list_.peers))) {
      return fmt::format("the list has no peer {}, but {} peers", i.peer.value, list_.peers);
    }
    if ((is_collective(i.op) || i.op == Op::Release) && !has(i.group, tables_.groups.size())) {
      return "the plan has no such group";
    }
    if (is_collective(i.op) && !has_its_group(i)) {
      return "its group does other things";
    }
    if (i.op == Op::Update && !has(i.bucket, tables_.buckets.size())) {
      return "the plan has no such bucket";
    }
    if (i.op == Op::Update) {
      const std::vector<StageId>& of = tables_.buckets[static_cast<std::size_t>(i.bucket)].stages;
      if (std::ranges::find(of, i.task.stage) == of.end()) {
        return "its bucket is of other stages";
      }
    }
    return "";
  }

  void check_forms() {
    std::size_t writes = 0;
    for (std::size_t position = 0; position < list_.instructions.size(); ++position) {
      const Instruction& i = list_.instructions[position];
      if (!is_in_words(i) || !has(i.stream.value, list_.streams.size())) {
        faults_.push_back(fmt::format(
            "P-9: {}: instruction {} of the list has a kind, stream, task or role that there is "
            "not",
            name_,
            position));
      }
      writes += i.writes.size();
    }
    if (list_.slots < 0 || static_cast<std::size_t>(list_.slots) > writes) {
      faults_.push_back(
          fmt::format("P-9: {} has {} slots, and its list fills {}", name_, list_.slots, writes));
    }
    for (const StageId stage : list_.stages) {
      if (!has(stage.value, tables_.stages.size())) {
        faults_.push_back(
            fmt::format("P-9: {} has stage {}, and the plan has not", name_, stage.value));
      }
    }
    if (!faults_.empty()) {
      return;  // the checks below print instructions and count slots
    }
    for (const Instruction& i : list_.instructions) {
      if (const std::string wrong = misshape(i); !wrong.empty()) {
        fault("P-9", i, wrong);
      } else if (i.does_nothing() && !i.writes.empty()) {
        fault("P-8", i, "it reads nothing, yet writes");
      }
    }
  }

  /// Checks ids and waits by the list alone.
  void check_ids() {
    std::vector<bool> seen(list_.instructions.size());
    for (const Instruction& i : list_.instructions) {
      for (const InstructionId wait : i.waits) {
        if (!has(wait.value, seen.size()) || !seen[wait.index()]) {
          fault("P-6", i, fmt::format("waits for i{}, which is not earlier", wait.value));
        }
      }
      if (!has(i.id.value, seen.size())) {
        fault("P-1", i, fmt::format("ids are numbers below {}", seen.size()));
      } else if (seen[i.id.index()]) {
        faults_.push_back(fmt::format("P-1: {}: the id i{} is used twice", name_, i.id.value));
      } else {
        seen[i.id.index()] = true;
      }
    }
  }

  [[nodiscard]] static bool is_on_its_stream(const Instruction& i) {
    return is_transfer(i.op) || is_collective(i.op) || i.op == Op::Free || i.stream == kCompute;
  }

  void check_streams() {
    struct Block {
      int group = -1;
      Task task;
    };
    std::vector<Block> block_of(list_.instructions.size());
    std::set<int> over;  // groups that have ended
    int open = -1;
    for (const Instruction& i : list_.instructions) {
      if (!is_on_its_stream(i)) {
        fault("P-2", i, "computes on another stream than the first");
      }
      if (open != i.overlap) {
        over.insert(open);
        open = i.overlap;
        if (open >= 0 && over.contains(open)) {
          fault("P-2", i, "its overlap group has ended before");
        }
      }
      if (is_collective(i.op) && i.overlap >= 0) {
        fault("P-2", i, "is in an overlap group, whose order each rank chooses by itself");
      }
      if (i.overlap >= 0) {
        for (const InstructionId wait : i.waits) {
          const Block& other = block_of[wait.index()];
          if (other.group == i.overlap && other.task != i.task) {
            fault("P-2",
                  i,
                  fmt::format("waits for i{} of another task of its overlap group", wait.value));
          }
        }
        block_of[i.id.index()] = {i.overlap, i.task};
      }
    }
  }

  /// Follows slots and gradients through the list. Checks their content, and that streams and waits
  /// order their users.
  void follow() {
    order_.emplace(list_.streams.size(), list_.instructions.size());
    slots_.resize(static_cast<std::size_t>(list_.slots));
    SumCheck sums(list_, tables_, *order_, [this](auto rule, const Instruction* in, auto what) {
      in != nullptr ? fault(rule, *in, what)
                    : faults_.push_back(fmt::format("{}: {}: {}", rule, name_, what));
    });
    ExchangeCheck exchanges(
        tables_, *order_, [this](const Instruction& in, auto what) { fault("P-13", in, what); });
    for (const Instruction& i : list_.instructions) {
      for (const SlotUse& use : i.reads) {
        read(i, use);
      }
      for (const SlotUse& use : i.writes) {
        write(i, use);
      }
      if (tables_.training) {
        exchanges.add(i);
      } else {
        check_forward_only(i);
      }
      if (!is_exchange(i)) {
        sums.add(i);
      }
      order_->add(i);
    }
    for (std::size_t s = 0; s < slots_.size(); ++s) {
      if (slots_[s].value) {
        faults_.push_back(fmt::format("P-4: {}: slot {} is never freed", name_, s));
      }
    }
    sums.end();
    if (tables_.training) {
      exchanges.end();
    }
  }

  void require_over(std::string_view rule, InstructionId earlier, const Instruction& i) {
    if (!order_->is_over(earlier, i)) {
      fault(rule, i, fmt::format("may begin before i{} is over", earlier.value));
    }
  }

  void read(const Instruction& i, const SlotUse& use) {
    Slot& slot = slots_[use.slot.index()];
    if (slot.value != use.value) {
      fault("P-4", i, "reads or frees a slot that does not hold the value");
      return;
    }
    if (i.op != Op::Free) {
      require_over("P-6", slot.users.front(), i);
      slot.users.push_back(i.id);
      return;
    }
    for (const InstructionId user : slot.users) {
      require_over("P-4", user, i);
    }
    slot = {.value = std::nullopt, .users = {}, .freed = i.id};
  }

  void write(const Instruction& i, const SlotUse& use) {
    Slot& slot = slots_[use.slot.index()];
    if (slot.value) {
      fault("P-4", i, "writes a slot that is not free");
      return;
    }
    if (slot.freed) {
      require_over("P-4", *slot.freed, i);
    }
    slot.value = use.value;
    slot.users.assign(1, i.id);
  }

  /// Checks that a list without training has only forwards; has_its_group() judges collectives.
  void check_forward_only(const Instruction& i) {
    const bool backward = i.op == Op::Run && i.task.kind != CellKind::Forward;
    if (backward || i.op == Op::Accumulate || i.op == Op::Vote || i.op == Op::Update) {
      fault("P-7", i, "it trains, in a plan of forwards");
    }
  }

  const RankList& list_;
  const PlanTables& tables_;
  const std::string& name_;
  std::vector<std::string> faults_;
  std::optional<IssueOrder> order_;
  std::vector<Slot> slots_;
};

/// Checks that copies of a part are summed, and no other ranks with them (P-13).
void check_parts(const PlanTables& tables, std::vector<std::string>& faults) {
  std::map<std::int32_t, std::vector<std::vector<Rank>>> copies;  // by divided bucket
  for (const PlanGroup& group : tables.groups) {
    if (group.kind == PlanGroup::Kind::Divided) {
      copies.emplace(group.bucket, copies_of_parts(group));
    }
  }
  for (std::size_t g = 0; g < tables.groups.size(); ++g) {
    const PlanGroup& group = tables.groups[g];
    const auto found = copies.find(group.bucket);
    if (group.kind != PlanGroup::Kind::Copies || (!group.sums_parts() && found == copies.end())) {
      continue;
    }
    const std::string_view wrong =
        found == copies.end()         ? "it sums parts of a bucket that no ranks divide"
        : group.has_shards()          ? "copies of a part share what they hold"
        : found->second != group.sets ? "it sums parts of ranks that have other ones"
                                      : "";
    if (!wrong.empty()) {
      faults.push_back(fmt::format("P-13: group {}, {}: {}", g, to_string(tables, group), wrong));
      return;
    }
    found->second.clear();
  }
  for (const auto& [bucket, missing] : copies) {
    if (!missing.empty()) {
      faults.push_back(
          fmt::format("P-13: nothing sums the gradients of the parts of bucket {}", bucket));
    }
  }
}

/// Checks that the tables refer to existing entries.
std::vector<std::string> faults_in(const PlanTables& tables) {
  std::vector<std::string> faults;
  const auto has_stages = [&](const std::vector<StageId>& stages) {
    return !stages.empty() && std::ranges::all_of(stages, [&](StageId s) {
      return s.value >= 0 && s.index() < tables.stages.size();
    });
  };
  for (const PlanStage& stage : tables.stages) {
    if (stage.size < 1 || stage.copy < 0 || stage.program.value < 0) {
      faults.emplace_back("P-9: a stage of the plan has numbers below those that there are");
    }
  }
  for (std::size_t b = 0; b < tables.buckets.size(); ++b) {
    const PlanBucket& bucket = tables.buckets[b];
    if (!has_stages(bucket.stages) || bucket.chunks.first < 0 ||
        bucket.chunks.count < (tables.training ? 1 : 0) ||
        bucket.chunks.end() < bucket.chunks.first) {
      faults.push_back(fmt::format("P-9: bucket {} has stages or chunks that there are not", b));
    }
  }
  for (std::size_t g = 0; g < tables.groups.size(); ++g) {
    const PlanGroup& group = tables.groups[g];
    const bool tie = group.kind == PlanGroup::Kind::Tie;
    const auto bucket = [&]() -> const PlanBucket& {
      return tables.buckets[static_cast<std::size_t>(group.bucket)];
    };
    const auto has_bucket = [&] {
      return group.bucket >= 0 && static_cast<std::size_t>(group.bucket) < tables.buckets.size();
    };
    const bool divided = group.kind == PlanGroup::Kind::Divided;
    const bool sound =
        group.kind <= PlanGroup::Kind::Divided && group.sharing <= Sharing::Weights &&
        has_stages(group.stages) &&
        (group.kind == PlanGroup::Kind::Copies || !group.has_shards()) && (tie || has_bucket()) &&
        (!divided ||
         (!group.sets.empty() && group.stages.size() == 1 && bucket().stages == group.stages &&
          (bucket().chunks.count == 1 || !tables.training) &&
          std::ranges::all_of(group.sets,
                              [&](const std::vector<Rank>& set) {
                                return set.size() == group.sets.front().size();
                              }))) &&
        std::ranges::all_of(group.sets, [&](const std::vector<Rank>& set) {
          return !set.empty() && (!tie || set.size() == group.stages.size());
        });
    if (!sound) {
      faults.push_back(fmt::format("P-9: group {} is of nothing that the plan has", g));
    }
  }
  if (faults.empty()) {
    check_parts(tables, faults);
  }
  return faults;
}

}  // namespace

std::vector<std::string> verify(const RankList& list,
                                const PlanTables& tables,
                                const std::string& name) {
  std::vector<std::string> faults = faults_in(tables);
  return faults.empty() ? ListCheck(list, tables, name).run() : faults;
}

}  // namespace stagecraft
