/// PiperDirective is one directive of a Piper file as data, without a judgment of its meaning.
///
/// parse_piper() (piper.h) makes a schedule of the directives, and parse_piper_strategy()
/// (strategy/piper_strategy.h) a strategy. Follows uw-syfi/piper at 77062e8 (2026,
/// src/directives.py).
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/scheduler/formats/json/json_reader.h"
#include "stagecraft/scheduler/formats/parts/fault_list.h"
#include "stagecraft/scheduler/model/cell.h"

namespace stagecraft::formats {

struct PiperTag {
  std::string name;
  std::optional<int> number;  ///< absent for "*" and for values that are no number
  bool any = false;           ///< "*"
};

struct PiperFilter {
  std::size_t offset = 0;      ///< in the text
  std::vector<PiperTag> tags;  ///< each once, without PASS
  std::optional<CellKind> pass;

  /// Returns the tag of this name; null without one.
  [[nodiscard]] const PiperTag* tag(std::string_view name) const;
};

struct PiperDirective {
  struct Key {
    std::string name;
    std::size_t offset = 0;
  };

  std::size_t offset = 0;  ///< in the text
  std::string op;
  PiperFilter filter;
  std::vector<int> devices;  ///< in the order of the file
  std::string dimension;
  std::optional<int> microbatches;
  std::vector<std::vector<PiperFilter>> groups;  ///< "filters" of an order
  std::string stream, gather_stream, reduce_stream;
  bool shard_params = false, shard_grads = false;
  std::optional<int> bucket_size;  ///< units of 1024 * 1024 bytes
  std::vector<Key> keys;           ///< all of the file, in its order

  [[nodiscard]] bool has(std::string_view key) const;
};

/// PiperDirectiveReader reads the directives one by one. It views text and faults.
class PiperDirectiveReader {
 public:
  PiperDirectiveReader(std::string_view text, FaultList& faults) : json_(text), faults_(faults) {}

  /// Calls `take` for each directive. An Error that it throws becomes a fault.
  /// Errors: ScheduleParse with line and column for a text that is no list of such objects.
  void read(const std::function<void(PiperDirective)>& take);

  /// Returns the place of an offset; fast for ascending ones.
  [[nodiscard]] Location location(std::size_t offset) const { return json_.location(offset); }
  /// Throws ScheduleParse with the place of an offset.
  [[noreturn]] void refuse(std::size_t offset, std::string_view what) const {
    json_.refuse(offset, what);
  }

 private:
  void open_array(std::string_view what);
  [[nodiscard]] PiperDirective directive();
  /// Returns whether it knows the key, and has read its value.
  [[nodiscard]] bool take_value(const std::string& key, PiperDirective& directive);
  [[nodiscard]] PiperFilter filter();
  [[nodiscard]] PiperTag tag(const std::string& name);
  [[nodiscard]] std::vector<int> devices();
  [[nodiscard]] std::vector<std::vector<PiperFilter>> groups();
  [[nodiscard]] std::string stream();
  [[nodiscard]] bool flag();
  [[nodiscard]] std::optional<int> size();
  void note(std::size_t offset, std::string_view what);

  JsonReader json_;
  FaultList& faults_;
  std::size_t cells_ = 0;
};

/// Returns the op of a directive that Piper does not have as a message, with the nearest one.
[[nodiscard]] std::string unknown_op(std::string_view op);

/// Returns the directive as the lines of a Piper file, indented by two columns. Values that a
/// directive does not have are left out.
[[nodiscard]] std::string to_text(const PiperDirective& directive);

}  // namespace stagecraft::formats
