#include "stagecraft/compiler/lower/emit.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "stagecraft/base/check.h"

namespace stagecraft {
namespace {

struct KeyHash {
  std::size_t operator()(const ValueKey& key) const {
    std::uint64_t h =
        (static_cast<std::uint64_t>(static_cast<std::uint32_t>(key.value.value)) << 32U) |
        static_cast<std::uint32_t>(key.microbatch.value);
    h ^= (static_cast<std::uint64_t>(static_cast<std::uint32_t>(key.stage.value)) << 40U) ^
         (static_cast<std::uint64_t>(key.role) << 28U) ^
         (static_cast<std::uint64_t>(static_cast<std::uint32_t>(key.chunk)) << 20U);
    h *= 0x9E3779B97F4A7C15ULL;
    return static_cast<std::size_t>(h ^ (h >> 29U));
  }
};

CollectiveKind collective_kind(DagKind kind) {
  switch (kind) {
    case DagKind::ReduceScatter:
      return CollectiveKind::ReduceScatter;
    case DagKind::AllGather:
      return CollectiveKind::AllGather;
    case DagKind::AllToAll:
      return CollectiveKind::AllToAll;
    default:
      return CollectiveKind::AllReduce;
  }
}

/// ChunkFacts holds facts about the chunks of a stage of the program.
struct ChunkFacts {
  std::vector<bool> trains;       ///< by chunk: a gradient of a parameter is complete there
  std::vector<int> first_reader;  ///< by input of the stage
  std::vector<int> maker;         ///< by output of the stage
};

class Emission {
 public:
  Emission(const EmitInput& in, int place, const std::vector<int>& nodes)
      : in_(in),
        nodes_(nodes),
        units_(in.units / static_cast<int>(in.dag.places[static_cast<std::size_t>(place)].size())) {
    result_.peers.push_back({});
    result_.list.streams.push_back(in.dag.streams.front());
    list_of_stream_.assign(in.dag.streams.size(), -1);
    list_of_stream_.front() = 0;
  }

  EmittedList run() {
    find_runs();
    find_loose_groups();
    find_driver_edges();
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const DagNode& node = node_at(i);
      finish_needed(nodes_[i]);
      if (computes(node.kind)) {
        emit_compute(i);
      } else if (is_transfer(node.kind)) {
        const bool now = !emitted_[i] && !is_in_block(i);
        for (int unit = 0; now && unit < units_; ++unit) {
          emit_transfer(nodes_[i], unit);
        }
      } else if (node.kind == DagKind::Vote) {
        emit(kCompute, Op::Vote);
      } else if (node.kind == DagKind::Update) {
        Instruction& update = emit(kCompute, Op::Update);
        update.task = {CellKind::Update, node.stage, Microbatch(0)};
        update.bucket = node.bucket;
      } else {
        emit_start(nodes_[i], node);
      }
    }
    RankList& list = result_.list;
    list.stages.assign(stages_.begin(), stages_.end());
    list.peers = static_cast<std::int32_t>(result_.peers.size());
    list.slots = static_cast<std::int32_t>(numbers_.size());
    return std::move(result_);
  }

 private:
  /// The nodes of one Run, by position in the list of nodes, and the block that it belongs to.
  struct TaskRun {
    std::vector<std::size_t> nodes;
    ChunkRange chunks;
  };

  [[nodiscard]] const DagNode& node_at(std::size_t i) const { return in_.dag.node(nodes_[i]); }
  [[nodiscard]] const DagEdge& edge(int e) const {
    return in_.dag.edges[static_cast<std::size_t>(e)];
  }
  [[nodiscard]] const StageProgram& program_of(StageId s) const {
    return in_.program.partition.stages[in_.source.stages[s.index()].program.index()];
  }
  [[nodiscard]] const PlanEdge& tensor(EdgeId id) const { return in_.source.edges[id.index()]; }
  [[nodiscard]] int size_of(StageId s) const { return in_.source.stages[s.index()].size; }

  /// Returns the list's number of a stage's microbatch in one of its units (EM-2).
  [[nodiscard]] Microbatch own(StageId s, Microbatch m, int unit) const {
    return Microbatch(m.value + unit * (in_.dag.microbatches / size_of(s)));
  }

  [[nodiscard]] bool is_skipped(const DagNode& node) const {
    return in_.dag.is_surplus(node) && !node.ordered;  // a row without the task
  }

  /// Divides the computing nodes into runs (EM-1).
  void find_runs() {
    position_.assign(in_.dag.nodes.size(), -1);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      position_[static_cast<std::size_t>(nodes_[i])] = static_cast<int>(i);
    }
    emitted_.assign(nodes_.size(), false);
    run_of_.assign(nodes_.size(), -1);
    std::size_t last = nodes_.size();
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (!computes(node_at(i).kind)) {
        continue;
      }
      if (last < nodes_.size() && continues(last, i)) {
        run_of_[i] = run_of_[last];
        TaskRun& run = runs_.back();
        run.nodes.push_back(i);
        run.chunks.first = std::min(run.chunks.first, node_at(i).chunk);
        ++run.chunks.count;
      } else {
        run_of_[i] = static_cast<int>(runs_.size());
        runs_.push_back({.nodes = {i}, .chunks = {node_at(i).chunk, 1}});
      }
      last = i;
    }
  }

  /// Finds the overlap groups whose tasks may run in any order: each is one run, and no collective
  /// begins between them.
  void find_loose_groups() {
    std::map<int, std::set<Task>> tasks;  // of a group that may be loose
    std::set<int> strict;
    int last_run = -1, last_group = kNone;
    bool collective = false;  // since the last task
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const DagNode& node = node_at(i);
      collective = collective || is_collective(node.kind);
      if (!computes(node.kind)) {
        continue;
      }
      if (node.overlap != kNone && run_of_[i] != last_run) {
        const bool goes_on = node.overlap == last_group;
        if (!tasks[node.overlap].insert(node.task()).second || (goes_on && collective)) {
          strict.insert(node.overlap);
        }
      }
      last_run = run_of_[i];
      last_group = node.overlap;
      collective = false;
    }
    for (const auto& [group, of_group] : tasks) {
      if (units_ == 1 && !strict.contains(group)) {
        loose_.insert(group);
      }
    }
  }

  /// Returns whether a transfer is emitted with the run that it serves: every receive of a block,
  /// and a send unless other computing comes between.
  [[nodiscard]] bool is_in_block(std::size_t i) const {
    const bool sends = node_at(i).kind == DagKind::Send;
    const DagEdge& moved = edge(data_edge(nodes_[i], sends));
    const int served = sends ? moved.from : moved.to;
    const int group = in_.dag.node(served).overlap;
    const bool loose = loose_.contains(group);
    if (!loose && units_ == 1) {
      return false;
    }
    const auto at = static_cast<std::size_t>(position_[static_cast<std::size_t>(served)]);
    for (std::size_t j = at + 1; sends && j < i; ++j) {
      const bool same = loose ? node_at(j).overlap == group : run_of_[j] == run_of_[at];
      if (computes(node_at(j).kind) && !same) {
        return false;
      }
    }
    return true;
  }

  /// Returns whether node `b`, the next to compute after `a`, belongs to the same run.
  [[nodiscard]] bool continues(std::size_t a, std::size_t b) const {
    const DagNode& before = node_at(a);
    const DagNode& next = node_at(b);
    const int step = next.kind == DagKind::Forward ? 1 : -1;
    if (before.kind != next.kind || before.stage != next.stage ||
        before.microbatch != next.microbatch || next.chunk != before.chunk + step) {
      return false;
    }
    const auto needs_collective = [&](int e) {
      return is_collective(in_.dag.node(edge(e).from).kind);
    };
    const auto completes_collective = [&](int e) {
      const int to = edge(e).to;
      return is_collective(in_.dag.node(to).kind) &&
             std::ranges::none_of(in_.edges.incoming(to), [&](int other) {
               const int at = position_[static_cast<std::size_t>(edge(other).from)];
               return at > static_cast<int>(a);
             });
    };
    return std::ranges::none_of(in_.edges.incoming(nodes_[b]), needs_collective) &&
           std::ranges::none_of(in_.edges.outgoing(nodes_[a]), completes_collective);
  }

  StreamId stream(int of_dag) {
    int& own = list_of_stream_[static_cast<std::size_t>(of_dag)];
    if (own < 0) {
      own = static_cast<int>(result_.list.streams.size());
      result_.list.streams.push_back(in_.dag.streams[static_cast<std::size_t>(of_dag)]);
    }
    return StreamId(own);
  }

  /// Returns the stream of the driver's tensors, which come and go like those of other peers.
  StreamId driver_stream(bool receives) {
    const std::string name = receives ? "receive" : "send";
    std::vector<std::string>& streams = result_.list.streams;
    const auto found = std::ranges::find(streams, name);
    if (found != streams.end()) {
      return StreamId(found - streams.begin());
    }
    const auto of_dag = std::ranges::find(in_.dag.streams, name);
    if (of_dag != in_.dag.streams.end()) {
      return stream(static_cast<int>(of_dag - in_.dag.streams.begin()));
    }
    streams.push_back(name);
    return StreamId(streams.size() - 1);
  }

  Instruction& emit(StreamId on, Op op) {
    std::vector<Instruction>& list = result_.list.instructions;
    Instruction& made = list.emplace_back();
    made.id = InstructionId(list.size() - 1);
    made.stream = on;
    made.op = op;
    return made;
  }

  PeerId peer(int place, int unit) {
    const auto [entry, added] =
        peer_of_.try_emplace({place, unit}, static_cast<int>(result_.peers.size()));
    if (added) {
      result_.peers.push_back({place, unit});
    }
    return PeerId(entry->second);
  }

  SlotId number(const ValueKey& key) {
    return SlotId(
        numbers_.try_emplace(key, static_cast<std::int32_t>(numbers_.size())).first->second);
  }
  void read(Instruction& instruction, const ValueKey& key) {
    instruction.reads.push_back({number(key), key});
  }
  void write(Instruction& instruction, const ValueKey& key) {
    instruction.writes.push_back({number(key), key});
  }

  /// Returns the name of a tensor that reached this rank by an edge. Gradients and received
  /// activations carry the consumer's name, because two consumers on this rank get two tensors. A
  /// local activation is the producer's one tensor.
  [[nodiscard]] static ValueKey key_of(const PlanEdge& edge, Microbatch m, bool received) {
    if (edge.role == Role::Gradient) {
      return {edge.value, Role::Gradient, edge.from, m};
    }
    return {edge.value, Role::Activation, received ? edge.to : edge.from, m};
  }

  /// Returns the name of a part of the tensor, which is the consumer's at both ends.
  [[nodiscard]] ValueKey part_key(const PlanEdge& edge,
                                  const MicrobatchRange& part,
                                  int unit) const {
    const bool gradient = edge.role == Role::Gradient;
    return {edge.value,
            gradient ? Role::GradientPart : Role::ActivationPart,
            gradient ? edge.from : edge.to,
            Microbatch(part.begin + unit * in_.dag.microbatches)};
  }

  /// Emits the run that begins at position `i`. The other tasks of its overlap group follow, and
  /// all units of the list (EM-2), each as a block: receives, run, sends.
  void emit_compute(std::size_t i) {
    if (emitted_[i]) {
      return;
    }
    const int group = node_at(i).overlap;
    if (!loose_.contains(group)) {
      emit_block(runs_[static_cast<std::size_t>(run_of_[i])], -1);
      return;
    }
    const int overlap = groups_++;
    for (std::size_t j = i; j < nodes_.size(); ++j) {
      if (computes(node_at(j).kind) && node_at(j).overlap == group && !emitted_[j]) {
        emit_block(runs_[static_cast<std::size_t>(run_of_[j])], overlap);
      } else if (computes(node_at(j).kind) && node_at(j).overlap != group) {
        break;
      }
    }
  }

  void emit_block(const TaskRun& run, int overlap) {
    const DagNode& node = node_at(run.nodes.front());
    for (const std::size_t i : run.nodes) {
      emitted_[i] = true;
    }
    if (is_skipped(node)) {
      return;
    }
    stages_.insert(node.stage);
    const bool together = units_ > 1 || overlap >= 0;  // with its sends
    for (int unit = 0; unit < units_; ++unit) {
      const std::size_t first = result_.list.instructions.size();
      emit_receives(run, unit);
      emit_run(run, unit);
      emit_results(run, unit);
      if (together) {
        emit_sends(run, unit);
      }
      for (std::size_t i = first; i < result_.list.instructions.size(); ++i) {
        result_.list.instructions[i].overlap = overlap;
      }
    }
  }

  /// Emits what the run needs and has not been emitted yet.
  void emit_receives(const TaskRun& run, int unit) {
    const DagNode& node = node_at(run.nodes.front());
    if (node.kind == DagKind::Forward) {
      emit_feeds(run, unit);
    }
    std::map<EdgeId, std::vector<ValueKey>> parts;
    for (const std::size_t i : run.nodes) {
      for (const int e : in_.edges.incoming(nodes_[i])) {
        const int from = edge(e).from;
        if (in_.dag.node(from).kind != DagKind::Receive) {
          continue;
        }
        const auto at = static_cast<std::size_t>(position_[static_cast<std::size_t>(from)]);
        if (!emitted_[at] || unit > 0) {
          emit_transfer(from, unit);
        }
        if (edge(e).part) {
          parts[edge(e).tensor].push_back(part_key(tensor(edge(e).tensor), *edge(e).part, unit));
        }
      }
    }
    for (auto& [of, keys] : parts) {
      emit_joint(own_task(node, unit), of, keys);
    }
  }

  [[nodiscard]] Task own_task(const DagNode& node, int unit) const {
    return {node.task().kind, node.stage, own(node.stage, node.microbatch, unit)};
  }

  /// Emits the receives of inputs and labels that the driver sends.
  void emit_feeds(const TaskRun& run, int unit) {
    const DagNode& node = node_at(run.nodes.front());
    const StageProgram& stage = program_of(node.stage);
    const ChunkFacts& facts = facts_of(node.stage);
    const Task task = own_task(node, unit);
    for (std::size_t i = 0; i < stage.inputs.size(); ++i) {
      const StageInput& input = stage.inputs[i];
      const int reader = facts.first_reader[i];
      if (input.source == StageInput::Source::Stage || reader < run.chunks.first ||
          reader >= run.chunks.end()) {
        continue;
      }
      const EdgeId of = feed_edges_.at({node.stage, input.value});
      const bool label = input.source == StageInput::Source::Label;
      const BatchSlice& slice =
          (label ? in_.program.labels
                 : in_.program.inputs)[static_cast<std::size_t>(input.position)];
      const int parts = slice.replicated ? 1 : size_of(node.stage);
      std::vector<ValueKey> keys;
      const auto [begin, end] = in_step(node.microbatch, parts);
      for (int m = begin; m < end; ++m) {
        const ValueKey key = parts == 1 ? key_of(tensor(of), task.microbatch, true)
                                        : part_key(tensor(of), {m, m + 1}, unit);
        Instruction& receive = emit(driver_stream(true), Op::Recv);
        receive.peer = kDriverPeer;
        receive.edge = of;
        receive.task = task;
        write(receive, key);
        keys.push_back(key);
      }
      if (parts > 1) {
        emit_joint(task, of, keys);
      }
    }
  }

  void find_driver_edges() {
    for (const PlanEdge& edge : in_.source.edges) {
      if (edge.from == StageId(-1)) {
        feed_edges_[{edge.to, edge.value}] = edge.id;
      } else if (edge.to == StageId(-1)) {
        result_edges_[{edge.from, edge.value}] = edge.id;
      }
    }
  }

  /// Emits a Send or a Receive, by its node.
  void emit_transfer(int n, int unit) {
    emitted_[static_cast<std::size_t>(position_[static_cast<std::size_t>(n)])] = true;
    const DagNode& node = in_.dag.node(n);
    const PlanEdge& of = tensor(node.tensor);
    const bool sends = node.kind == DagKind::Send;
    const DagEdge& moved = edge(data_edge(n, sends));
    // A transfer belongs to the task that makes or reads the tensor.
    const Task task = own_task(in_.dag.node(sends ? moved.from : moved.to), unit);
    ValueKey key = node.part ? part_key(of, *node.part, unit)
                             : key_of(of, task.microbatch, /*received=*/!sends);
    if (sends && node.part) {
      emit_part(task, of, node, key);
    }
    Instruction& transfer = emit(stream(node.stream), sends ? Op::Send : Op::Recv);
    transfer.peer = peer(in_.dag.node(node.peer).place, unit);
    transfer.edge = node.tensor;
    transfer.task = task;
    if (sends) {
      read(transfer, key);
    } else {
      write(transfer, key);
    }
  }

  /// Returns the edge by which a transfer gets its tensor, or hands it on.
  [[nodiscard]] int data_edge(int n, bool sends) const {
    const auto edges = sends ? in_.edges.incoming(n) : in_.edges.outgoing(n);
    const auto found = std::ranges::find_if(edges, [&](int e) { return edge(e).data; });
    SC_CHECK(found != edges.end(), "a transfer has a tensor");
    return *found;
  }

  /// Takes the part that another stage wants out of a tensor.
  void emit_part(const Task& task, const PlanEdge& of, const DagNode& node, const ValueKey& key) {
    const int size = size_of(task.stage);
    Instruction& part = emit(kCompute, Op::Regroup);
    part.task = task;
    read(part, key_of(of, task.microbatch, /*received=*/false));
    part.rows.push_back({node.part->begin - in_step(node.microbatch, size).begin,
                         node.part->end - node.part->begin,
                         size});
    write(part, key);
  }

  /// Joins the parts received for one value.
  void emit_joint(const Task& task, EdgeId of, std::vector<ValueKey>& parts) {
    std::ranges::sort(parts, {}, &ValueKey::microbatch);
    Instruction& joint = emit(kCompute, Op::Regroup);
    joint.task = task;
    for (const ValueKey& part : parts) {
      read(joint, part);
      joint.rows.push_back({});
    }
    write(joint, key_of(tensor(of), task.microbatch, true));
  }

  void emit_sends(const TaskRun& run, int unit) {
    for (const std::size_t i : run.nodes) {
      for (const int e : in_.edges.outgoing(nodes_[i])) {
        const int to = edge(e).to;
        if (edge(e).data && in_.dag.node(to).kind == DagKind::Send &&
            is_in_block(static_cast<std::size_t>(position_[static_cast<std::size_t>(to)]))) {
          emit_transfer(to, unit);
        }
      }
    }
  }

  /// Emits the sends of an evaluation's results.
  void emit_results(const TaskRun& run, int unit) {
    const DagNode& node = node_at(run.nodes.front());
    if (in_.program.evaluates == nullptr || node.kind != DagKind::Forward) {
      return;
    }
    const StageProgram& stage = program_of(node.stage);
    const Task task = own_task(node, unit);
    for (std::size_t i = 0; i < stage.outputs.size(); ++i) {
      const auto found = result_edges_.find({node.stage, stage.outputs[i].value});
      const int maker = facts_of(node.stage).maker[i];
      if (found == result_edges_.end() || maker < run.chunks.first || maker >= run.chunks.end()) {
        continue;
      }
      Instruction& send = emit(driver_stream(false), Op::Send);
      send.peer = kDriverPeer;
      send.edge = found->second;
      send.task = task;
      read(send, key_of(tensor(found->second), task.microbatch, false));
    }
  }

  const ChunkFacts& facts_of(StageId s) {
    const StageProgram& stage = program_of(s);
    const auto [entry, added] = facts_.try_emplace(stage.id);
    ChunkFacts& facts = entry->second;
    if (!added) {
      return facts;
    }
    const DagSource& source = in_.source.dag;
    for (const DagChunk& chunk : source.chunks[s.index()]) {
      facts.trains.push_back(stage.trains() && chunk.parameter_bytes > 0);
    }
    for (const StageInput& input : stage.inputs) {
      facts.first_reader.push_back(first_reader(stage, input.value));
    }
    for (const StageOutput& output : stage.outputs) {
      facts.maker.push_back(maker_of(stage, output.value));
    }
    return facts;
  }

  void emit_run(const TaskRun& task_run, int unit) {
    const DagNode& node = node_at(task_run.nodes.front());
    const Task task = own_task(node, unit);
    const ChunkRange chunks = task_run.chunks;
    const StageProgram& stage = program_of(node.stage);
    const ChunkFacts& facts = facts_of(node.stage);
    const Microbatch m = task.microbatch;
    const ValueKey saved{kNoValue, Role::Saved, task.stage, m};
    Instruction& run = emit(kCompute, Op::Run);
    run.task = task;
    run.chunks = chunks;
    if (in_.dag.is_surplus(node)) {
      return;  // P-8
    }
    for (const std::size_t i : task_run.nodes) {
      for (const int e : in_.edges.incoming(nodes_[i])) {
        if (edge(e).data && edge(e).tensor.value >= 0) {
          const bool received = in_.dag.node(edge(e).from).kind == DagKind::Receive;
          read_once(run, key_of(tensor(edge(e).tensor), m, received));
        }
      }
    }
    const auto inside = [&](int chunk) { return chunk >= chunks.first && chunk < chunks.end(); };
    const bool whole = chunks.count == static_cast<int>(stage.chunks.size());
    if (task.kind == CellKind::Forward) {
      for (std::size_t i = 0; i < stage.inputs.size(); ++i) {
        if (stage.inputs[i].source != StageInput::Source::Stage && inside(facts.first_reader[i])) {
          read_once(run,
                    key_of(tensor(feed_edges_.at({node.stage, stage.inputs[i].value})), m, true));
        }
      }
      for (std::size_t i = 0; i < stage.outputs.size(); ++i) {
        if (inside(facts.maker[i])) {
          write(run, {stage.outputs[i].value, Role::Activation, task.stage, m});
        }
      }
      const bool keeps = in_.dag.training && in_.source.dag.graph.has_backward(task.stage);
      if (keeps || !whole) {
        if (chunks.first == 0) {
          write(run, saved);
        } else {
          read(run, saved);
        }
      }
      return;
    }
    read(run, saved);
    if (task.kind != CellKind::BackwardWeight) {
      for (std::size_t i = 0; i < stage.inputs.size(); ++i) {
        if (stage.inputs[i].owes_gradient && inside(facts.first_reader[i])) {
          write(run, {stage.inputs[i].value, Role::Gradient, task.stage, m});
        }
      }
    }
    const auto begin = facts.trains.begin();
    const bool trains =
        std::find(begin + chunks.first, begin + chunks.end(), true) != begin + chunks.end();
    if (task.kind != CellKind::BackwardInput && trains) {
      const ValueKey gradients{kNoValue, Role::ParameterGradient, task.stage, m, chunks.first};
      write(run, gradients);
      Instruction& accumulate = emit(kCompute, Op::Accumulate);
      accumulate.task = task;
      accumulate.chunks = chunks;
      read(accumulate, gradients);
    }
  }

  void read_once(Instruction& run, const ValueKey& key) {
    if (std::ranges::find(run.reads, key, &SlotUse::value) == run.reads.end()) {
      read(run, key);
    }
  }

  void emit_start(int n, const DagNode& node) {
    Instruction& start = emit(stream(node.stream), Op::Start);
    const bool tie = node.tie != kNone;
    start.collective = tie ? CollectiveKind::AllGather : collective_kind(node.kind);
    start.group = tie ? in_.group_of_tie[static_cast<std::size_t>(node.tie)]
                      : in_.group_of_bucket[static_cast<std::size_t>(node.bucket)];
    unfinished_.emplace(n, start);
  }

  /// Ends the collectives whose results the node needs.
  void finish_needed(int n) {
    if (unfinished_.empty()) {
      return;
    }
    for (const int e : in_.edges.incoming(n)) {
      const auto found = unfinished_.find(edge(e).from);
      // Nodes of one stream only follow each other.
      if (found == unfinished_.end() || is_neighbor(edge(e))) {
        continue;
      }
      Instruction& finish = emit(found->second.stream, Op::Finish);
      finish.collective = found->second.collective;
      finish.group = found->second.group;
      unfinished_.erase(found);
    }
  }

  /// Returns whether the edge only keeps the order of a communication stream.
  [[nodiscard]] bool is_neighbor(const DagEdge& e) const {
    return !e.data && is_collective(in_.dag.node(e.to).kind) &&
           in_.dag.node(e.to).stream == in_.dag.node(e.from).stream;
  }

  const EmitInput& in_;
  const std::vector<int>& nodes_;
  const int units_;
  EmittedList result_;
  std::vector<int> list_of_stream_;  // by stream of the DAG
  std::vector<int> position_;        // by node of the DAG
  std::vector<bool> emitted_;        // by position
  std::vector<int> run_of_;          // by position of a computing node
  std::vector<TaskRun> runs_;
  std::set<int> loose_;  // overlap groups
  std::set<StageId> stages_;
  std::map<std::pair<int, int>, int> peer_of_;
  std::unordered_map<ValueKey, std::int32_t, KeyHash> numbers_;
  std::map<std::pair<StageId, ValueId>, EdgeId> feed_edges_, result_edges_;
  std::map<StageId, ChunkFacts> facts_;  // by stage of the program
  std::map<int, Instruction> unfinished_;
  int groups_ = 0;
};

}  // namespace

EmittedList emit(const EmitInput& input, int place, const std::vector<int>& nodes) {
  return Emission(input, place, nodes).run();
}

}  // namespace stagecraft
