/// ListWriter appends instructions to a rank list and numbers what they name: streams, peers and
/// values.
///
/// emit makes one for a list. Slots and waits come later: until then a SlotId is the number of a
/// value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/scheduler/dag/dag.h"

namespace stagecraft {

/// A list and its peers.
struct EmittedList {
  /// The other end of transfers: of the ranks of a place, the one with the same unit of samples.
  struct Peer {
    int place = kNone;  ///< position in TrainingDag::places; kNone: the driver
    int unit = 0;       ///< of the list's own units
  };
  RankList list;            ///< without ids of slots and waits: a SlotId is the number of a value
  std::vector<Peer> peers;  ///< by PeerId
};

class ListWriter {
 public:
  /// `streams`: those of the DAG, which must outlive the writer.
  explicit ListWriter(const std::vector<std::string>& streams);

  /// Appends an instruction. The reference is valid until the next one.
  Instruction& emit(StreamId on, Op op);
  /// Sets the overlap group of the instructions from position `first` on.
  void set_overlap(std::size_t first, int overlap);
  [[nodiscard]] std::size_t size() const { return result_.list.instructions.size(); }

  /// Returns the list's number of a stream of the DAG.
  StreamId stream(int of_dag);
  /// Returns the stream of the driver's tensors, which come and go like those of other peers.
  StreamId driver_stream(bool receives);
  /// Returns the list's number of a peer.
  PeerId peer(int place, int unit);

  void read(Instruction& instruction, const ValueKey& key);
  /// Does nothing if the instruction reads the value already.
  void read_once(Instruction& instruction, const ValueKey& key);
  void write(Instruction& instruction, const ValueKey& key);

  void add_stage(StageId stage) { stages_.insert(stage); }

  [[nodiscard]] EmittedList take() &&;

 private:
  struct KeyHash {
    std::size_t operator()(const ValueKey& key) const;
  };

  SlotId number(const ValueKey& key);

  const std::vector<std::string>& dag_streams_;
  EmittedList result_;
  std::vector<int> list_of_stream_;  // by stream of the DAG; -1: not in the list
  std::set<StageId> stages_;
  std::map<std::pair<int, int>, int> peer_of_;  // by place and unit
  std::unordered_map<ValueKey, std::int32_t, KeyHash> numbers_;
};

}  // namespace stagecraft
