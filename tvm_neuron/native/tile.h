// Included once for each kind of processor, with TILE_NAMESPACE, TILE_TARGET, TILE_FLOATS, TILE_ROWS and
// TILE_ADD_PRODUCT(x, y, sum): one matrix product, each sum by itself in the order of k.

namespace TILE_NAMESPACE {

typedef float Vector __attribute__((vector_size(4 * TILE_FLOATS)));
constexpr int64_t kRows = TILE_ROWS, kColumns = 2 * TILE_FLOATS;
constexpr int64_t kBlock = 512 / kColumns * kColumns;  // columns that stay in a cache for all rows

TILE_TARGET inline Vector Load(const float* place) {
  Vector found;
  std::memcpy(&found, place, sizeof found);
  return found;
}

// sums[rows, kColumns] of left [k, rows] and right [k, kColumns].
template <int rows>
TILE_TARGET void Tile(int64_t k, Side left, Side right, Target target, int64_t columns) {
  Vector sums[rows][2] = {};
  for (int row = 0; row < rows; ++row) {
    __builtin_prefetch(target.At(row, 0), 1);
    __builtin_prefetch(target.At(row, columns - 1), 1);
  }
  for (; k > 0; --k, left.data += left.row, right.data += right.row) {
    const Vector first = Load(right.data), second = Load(right.data + TILE_FLOATS);
    for (int row = 0; row < rows; ++row) {
      const Vector x = left.data[row] - Vector{};
      sums[row][0] = TILE_ADD_PRODUCT(x, first, sums[row][0]);
      sums[row][1] = TILE_ADD_PRODUCT(x, second, sums[row][1]);
    }
  }
  if (target.column == 1 && columns == kColumns) {
    for (int row = 0; row < rows; ++row) {
      float* place = target.data + row * target.row;
      for (int half = 0; half < 2; ++half, place += TILE_FLOATS) {
        if (!target.is_fresh) sums[row][half] = Load(place) + sums[row][half];
        std::memcpy(place, &sums[row][half], sizeof(Vector));
      }
    }
    return;
  }
  float all[rows][kColumns];
  std::memcpy(all, sums, sizeof all);
  for (int row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      float& place = target.data[row * target.row + column * target.column];
      place = target.is_fresh ? all[row][column] : place + all[row][column];
    }
  }
}

using TileOfRows = void (*)(int64_t, Side, Side, Target, int64_t);

template <size_t... counts>
constexpr std::array<TileOfRows, sizeof...(counts)> Tiles(std::index_sequence<counts...>) {
  return {Tile<counts + 1>...};
}

// target[m, n] = (target.is_fresh ? 0 : target) + left.T @ right, of left [k, m] and right [k, n].
inline void Multiply(int64_t m, int64_t n, int64_t k, Side left, Side right, Target target) {
  static constexpr auto kTiles = Tiles(std::make_index_sequence<kRows>());
  if (n < kColumns && n < m) {  // a vector is filled by the longer side
    std::swap(m, n);
    std::swap(left, right);
    std::swap(target.row, target.column);
  }
  left.panel = kRows;
  thread_local std::vector<float> lefts, ends;
  if (n > kColumns) left = Packed<kRows>(left, k, m, lefts);
  for (int64_t block = 0; block < n; block += kBlock) {
    const int64_t width = std::min<int64_t>(kBlock, n - block), whole = width / kColumns * kColumns;
    const Side inside{right.data + block, right.row, kColumns};
    Side end{inside.data + whole, inside.row, 0};
    if (whole < width) end = Packed<kColumns>(end, k, width - whole, ends);
    for (int64_t row = 0; row < m; row += kRows) {
      const TileOfRows multiply = kTiles[std::min<int64_t>(kRows, m - row) - 1];
      const Side panel = left.Panel(row / kRows);
      for (int64_t column = 0; column < width; column += kColumns) {
        const Target place{target.At(row, block + column), target.row, target.column, target.is_fresh};
        if (column < whole) multiply(k, panel, inside.Panel(column / kColumns), place, kColumns);
        else multiply(k, panel, end, place, width - column);
      }
    }
  }
}

}  // namespace TILE_NAMESPACE

#undef TILE_NAMESPACE
#undef TILE_TARGET
#undef TILE_FLOATS
#undef TILE_ROWS
#undef TILE_ADD_PRODUCT
