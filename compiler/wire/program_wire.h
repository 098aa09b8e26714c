/// program_wire writes and reads stage programs: it adds to fields.h the leaves that programs have
/// (constants, literals, attachments), and the enumerations.
///
/// Code that sends a message with stage programs uses it (actors/executor/setup/setup_wire.h).
/// PW-1: attachments are code of one process. A writer writes their names, so that a program can be
///       measured; a reader refuses them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "stagecraft/compiler/graph/graph.h"
#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/compiler/stage/stage_program.h"
#include "stagecraft/compiler/wire/fields.h"
#include "stagecraft/compiler/wire/tensor_table.h"

namespace stagecraft::wire {

using ProgramLeaves = std::tuple<c10::IValue, at::Tensor, Attachment>;

class ProgramWriter : public Writer {
 public:
  using Leaves = ProgramLeaves;

  /// Requires: `tensors` outlives the writer.
  explicit ProgramWriter(TensorTable& tensors) : tensors_(tensors) {}

  void leaf(const c10::IValue& literal);
  void leaf(const at::Tensor& constant);
  void leaf(const Attachment& attachment);

 private:
  TensorTable& tensors_;
};

class ProgramReader : public Reader {
 public:
  using Leaves = ProgramLeaves;
  using Reader::Reader;

  /// Sets the tensors that the program refers to by number.
  void use(std::vector<at::Tensor> tensors) { tensors_ = std::move(tensors); }

  void leaf(c10::IValue& literal);
  void leaf(at::Tensor& constant);
  void leaf(Attachment& attachment);

 private:
  std::vector<at::Tensor> tensors_;
};

/// Returns everything that keeps a stage in its process, one sentence each: its attachments, by
/// name, and literals and constants that have no form on the wire, by their operators.
[[nodiscard]] std::vector<std::string> obstacles(const StageProgram& stage);

/// TravelSize is the size of a stage on its way to a rank. Units: bytes.
struct TravelSize {
  std::size_t program = 0;
  std::int64_t constants = 0;
};
/// For a stage that cannot be sent, the parts that prevent it are not measured.
[[nodiscard]] TravelSize travel_size(const StageProgram& stage);

template <>
inline constexpr ValueKind kLast<ValueKind> = ValueKind::Computed;
template <>
inline constexpr at::ScalarType kLast<at::ScalarType> =
    static_cast<at::ScalarType>(static_cast<int>(at::ScalarType::Undefined) - 1);
template <>
inline constexpr StageInput::Source kLast<StageInput::Source> = StageInput::Source::Stage;
template <>
inline constexpr Op kLast<Op> = Op::Release;
template <>
inline constexpr PlanGroup::Kind kLast<PlanGroup::Kind> = PlanGroup::Kind::Divided;
template <>
inline constexpr Sharing kLast<Sharing> = Sharing::Weights;
template <>
inline constexpr CollectiveKind kLast<CollectiveKind> = CollectiveKind::AllToAll;
template <>
inline constexpr Role kLast<Role> = Role::GradientPart;
template <>
inline constexpr CellKind kLast<CellKind> = CellKind::Update;

}  // namespace stagecraft::wire
