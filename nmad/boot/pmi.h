/*
 * Which ranks share a node, as PMI-1 and PMI-2 say it.
 */
#ifndef NMAD_BOOT_PMI_H
#define NMAD_BOOT_PMI_H

/*
 * Read PMI_process_mapping, "(vector,(first,nodes,each),...)": node[r] becomes
 * the number of the node of rank r; the blocks are repeated until all of
 * `size` ranks are placed. 0 or -EPROTO, silently.
 */
int nm_boot_pmi_mapping(const char *text, int size, int *node);

struct nm_boot;

/*
 * The same into b->node, which the caller frees; NULL: the launcher does not
 * say, and nobody shares a host, which is slower and right. 0, or -errno, with
 * a message.
 */
int nm_boot_pmi_nodes(struct nm_boot *b, const char *text);

#endif
