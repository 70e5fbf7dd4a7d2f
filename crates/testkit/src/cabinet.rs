//! Cabinets for tests.

/// A cabinet of files that are not compressed. Equal files are stored once, as `WiX` does.
pub fn cabinet(files: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut names, mut content) = (Vec::new(), Vec::new());
    let mut stored: Vec<(&[u8], usize)> = Vec::new();
    for &(name, bytes) in files {
        let equal = stored.iter().find(|(own, _)| *own == bytes);
        let offset = equal.map_or(content.len(), |(_, offset)| *offset);
        if equal.is_none() {
            stored.push((bytes, offset));
            content.extend(bytes);
        }
        names.extend(u32::try_from(bytes.len()).unwrap().to_le_bytes());
        names.extend(u32::try_from(offset).unwrap().to_le_bytes());
        names.extend([0; 8]);
        names.extend(name.as_bytes());
        names.push(0);
    }
    let blocks: Vec<&[u8]> = content.chunks(32 << 10).collect();
    let mut cabinet = b"MSCF".to_vec();
    cabinet.extend([0; 12]);
    cabinet.extend(44_u32.to_le_bytes());
    cabinet.extend([0, 0, 0, 0, 3, 1, 1, 0]);
    cabinet.extend(u16::try_from(files.len()).unwrap().to_le_bytes());
    cabinet.extend([0; 6]);
    cabinet.extend(u32::try_from(44 + names.len()).unwrap().to_le_bytes());
    cabinet.extend(u16::try_from(blocks.len()).unwrap().to_le_bytes());
    cabinet.extend([0; 2]);
    cabinet.extend(names);
    for block in blocks {
        let size = u16::try_from(block.len()).unwrap().to_le_bytes();
        cabinet.extend([0; 4]);
        cabinet.extend(size);
        cabinet.extend(size);
        cabinet.extend(block);
    }
    cabinet
}
