#include "stagecraft/compiler/lower/list_writer.h"

#include <algorithm>

namespace stagecraft {

std::size_t ListWriter::KeyHash::operator()(const ValueKey& key) const {
  const auto bits = [](std::int32_t number) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(number));
  };
  std::uint64_t h = (bits(key.value.value) << 32U) | bits(key.microbatch.value);
  h ^= (bits(key.stage.value) << 40U) ^ (static_cast<std::uint64_t>(key.role) << 28U) ^
       (bits(key.chunk) << 20U);
  h *= 0x9E3779B97F4A7C15ULL;
  return static_cast<std::size_t>(h ^ (h >> 29U));
}

ListWriter::ListWriter(const std::vector<std::string>& streams)
    : dag_streams_(streams), list_of_stream_(streams.size(), -1) {
  result_.peers.push_back({});
  result_.list.streams.push_back(streams.front());
  list_of_stream_.front() = 0;
}

Instruction& ListWriter::emit(StreamId on, Op op) {
  std::vector<Instruction>& list = result_.list.instructions;
  Instruction& made = list.emplace_back();
  made.id = InstructionId(list.size() - 1);
  made.stream = on;
  made.op = op;
  return made;
}

void ListWriter::set_overlap(std::size_t first, int overlap) {
  for (std::size_t i = first; i < size(); ++i) {
    result_.list.instructions[i].overlap = overlap;
  }
}

StreamId ListWriter::stream(int of_dag) {
  int& own = list_of_stream_[static_cast<std::size_t>(of_dag)];
  if (own < 0) {
    own = static_cast<int>(result_.list.streams.size());
    result_.list.streams.push_back(dag_streams_[static_cast<std::size_t>(of_dag)]);
  }
  return StreamId(own);
}

StreamId ListWriter::driver_stream(bool receives) {
  const std::string name = receives ? "receive" : "send";
  std::vector<std::string>& streams = result_.list.streams;
  const auto found = std::ranges::find(streams, name);
  if (found != streams.end()) {
    return StreamId(found - streams.begin());
  }
  const auto of_dag = std::ranges::find(dag_streams_, name);
  if (of_dag != dag_streams_.end()) {
    return stream(static_cast<int>(of_dag - dag_streams_.begin()));
  }
  streams.push_back(name);
  return StreamId(streams.size() - 1);
}

PeerId ListWriter::peer(int place, int unit) {
  const auto [entry, added] =
      peer_of_.try_emplace({place, unit}, static_cast<int>(result_.peers.size()));
  if (added) {
    result_.peers.push_back({place, unit});
  }
  return PeerId(entry->second);
}

SlotId ListWriter::number(const ValueKey& key) {
  return SlotId(
      numbers_.try_emplace(key, static_cast<std::int32_t>(numbers_.size())).first->second);
}

void ListWriter::read(Instruction& instruction, const ValueKey& key) {
  instruction.reads.push_back({number(key), key});
}

void ListWriter::read_once(Instruction& instruction, const ValueKey& key) {
  if (std::ranges::find(instruction.reads, key, &SlotUse::value) == instruction.reads.end()) {
    read(instruction, key);
  }
}

void ListWriter::write(Instruction& instruction, const ValueKey& key) {
  instruction.writes.push_back({number(key), key});
}

EmittedList ListWriter::take() && {
  RankList& list = result_.list;
  list.stages.assign(stages_.begin(), stages_.end());
  list.peers = static_cast<std::int32_t>(result_.peers.size());
  list.slots = static_cast<std::int32_t>(numbers_.size());
  return std::move(result_);
}

}  // namespace stagecraft
